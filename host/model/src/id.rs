//! Identities. Everything is keyed by uid, never by name: a node or job that
//! comes back under an old name is another one.

use crate::parse::FieldError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

macro_rules! uid {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "-{:03}"), self.0)
            }
        }
    };
}

uid!(
    /// A job. Given by the ledger at submission, in order, never again.
    JobUid,
    "job"
);
uid!(
    /// A machine, from when it appears until it is removed.
    NodeUid,
    "node"
);
uid!(
    /// What one member of a job holds.
    ClaimUid,
    "claim"
);

/// BLAKE3 hash that names a policy, its configuration and its prepared data,
/// or any other content.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The first twelve hexadecimal digits, for tables.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.short())
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        let bad = || serde::de::Error::custom("a digest is 64 hexadecimal digits");
        if text.len() != 64 || !text.is_ascii() {
            return Err(bad());
        }
        let mut out = [0; 32];
        for (i, byte) in out.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| bad())?;
        }
        Ok(Self(out))
    }
}

/// A queue's name.
pub type QueueName = Arc<str>;

/// Checks a name that people give to a job, queue, tenant or node: 1–63
/// lower-case letters, digits, `-` and `.`, beginning and ending with a letter
/// or digit, so that it can be copied into labels and file names as it is.
pub fn check_name(field: &str, name: &str) -> Result<(), FieldError> {
    let ok = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fine = !name.is_empty()
        && name.len() <= 63
        && name.chars().all(|c| ok(c) || c == '-' || c == '.')
        && name.starts_with(ok)
        && name.ends_with(ok);
    if fine {
        return Ok(());
    }
    Err(FieldError::new(
        field,
        name,
        "1 to 63 lower-case letters, digits, '-' or '.', beginning and ending with a letter or digit",
    ))
}

/// Where work belongs: department / project / person. A path of one part is a
/// department, of two a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TenantPath(Arc<str>);

impl TenantPath {
    /// Parses `department`, `department/project` or `department/project/person`.
    pub fn parse(field: &str, text: &str) -> Result<Self, FieldError> {
        if text.split('/').count() > 3 {
            return Err(FieldError::new(field, text, "department/project/person"));
        }
        for part in text.split('/') {
            check_name(field, part)?;
        }
        Ok(Self(text.into()))
    }

    /// The whole path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path's first `levels` parts, or all of it if it has fewer.
    pub fn level(&self, levels: usize) -> &str {
        let mut seen = 0;
        for (i, c) in self.0.char_indices() {
            if c == '/' {
                seen += 1;
                if seen == levels {
                    return &self.0[..i];
                }
            }
        }
        &self.0
    }

    /// The department.
    pub fn department(&self) -> &str {
        self.level(1)
    }

    /// Department and project.
    pub fn project(&self) -> &str {
        self.level(2)
    }
}

impl fmt::Display for TenantPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for TenantPath {
    type Error = FieldError;
    fn try_from(text: String) -> Result<Self, FieldError> {
        Self::parse("tenant", &text)
    }
}

impl From<TenantPath> for String {
    fn from(path: TenantPath) -> String {
        path.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_not_fit_a_label_are_refused() {
        for bad in ["", "a b", "../x", "训练", "Upper", "-a", "a-", &"x".repeat(64)] {
            assert!(check_name("name", bad).is_err(), "{bad}");
        }
        for good in ["a", "llm-inference-7b", "v1.0", &"x".repeat(63)] {
            assert!(check_name("name", good).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_path_knows_its_levels() {
        let path = TenantPath::parse("tenant", "ai/nlp/mei").unwrap();
        assert_eq!(
            (path.department(), path.project(), path.as_str()),
            ("ai", "ai/nlp", "ai/nlp/mei")
        );
        assert_eq!(TenantPath::parse("tenant", "ai").unwrap().project(), "ai");
        assert!(TenantPath::parse("tenant", "a/b/c/d").is_err());
        assert!(TenantPath::parse("tenant", "a//b").is_err());
    }
}
