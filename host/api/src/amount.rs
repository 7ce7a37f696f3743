//! Amounts as people write them: numbers or texts.

use crater_server::config::Text;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A text such as `32Gi`, or a number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Amount(pub String);

impl From<&str> for Amount {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Text::deserialize(from).map(|text| Self(text.0))
    }
}

impl PartialSchema for Amount {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).max_length(Some(64));
        let number = ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0));
        OneOfBuilder::new().item(text).item(number).into()
    }
}

impl ToSchema for Amount {
    fn name() -> Cow<'static, str> {
        "Amount".into()
    }
}
