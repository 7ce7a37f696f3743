//! Where policies come from.

use crater_engine::{Policy, Strings};
use std::sync::Arc;

/// Loads policies by name, so that what simulates need not know how they are
/// compiled. The built-in orders `binpack` and `spread` are never asked for.
pub trait PolicySource {
    /// The policy of a name with a configuration (JSON, empty for none); an
    /// error says why there is none, for people.
    fn load(&self, name: &str, config: &str) -> Result<Arc<dyn Policy>, String>;

    /// The strings whose numbers its policies see; the books of what is
    /// simulated with them must number by the same.
    fn strings(&self) -> Arc<Strings> {
        Arc::default()
    }
}

/// Has no policy but the built-in orders and the scripted ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPolicies;

impl PolicySource for NoPolicies {
    fn load(&self, name: &str, _config: &str) -> Result<Arc<dyn Policy>, String> {
        Err(format!("there is no policy {name:?}: binpack, spread and scripted are built in"))
    }
}
