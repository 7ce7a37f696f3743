//! A queue's configuration of its policy, in one canonical spelling.

use serde_json::Value;
use std::fmt::Write;
use thiserror::Error;

/// Bytes of a configuration.
const BYTES: usize = 1 << 20;

/// A configuration that no policy is asked about.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// Not JSON.
    #[error("the policy's configuration is not JSON: {detail}")]
    Syntax {
        /// Where and why.
        detail: String,
    },
    /// JSON, but no object.
    #[error("the policy's configuration must be a JSON object, such as {{\"weight\": 3}}")]
    NoObject,
    /// Too many bytes.
    #[error("the policy's configuration has {bytes} bytes; {BYTES} are allowed")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
}

/// The same text for the same configuration: keys sorted, no white space.
/// Nothing at all means `{}`.
pub(crate) fn canonical(text: &str) -> Result<String, ConfigError> {
    if text.len() > BYTES {
        return Err(ConfigError::TooLarge { bytes: text.len() });
    }
    if text.trim().is_empty() {
        return Ok("{}".to_owned());
    }
    let value: Value =
        serde_json::from_str(text).map_err(|e| ConfigError::Syntax { detail: e.to_string() })?;
    if !value.is_object() {
        return Err(ConfigError::NoObject);
    }
    let mut out = String::with_capacity(text.len());
    write(&value, &mut out);
    Ok(out)
}

/// Sorts by hand: whether `Map` does depends on a feature that any crate of
/// the program can switch.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (i, (key, value)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                let _ = write!(out, "{}:", Value::from(key.as_str()));
                write(value, out);
            }
            out.push('}');
        }
        Value::Array(values) => {
            out.push('[');
            for (i, value) in values.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(value, out);
            }
            out.push(']');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_does_not_matter() {
        let a = canonical(" {\"b\": [1, {\"z\": null, \"y\": \"ä\\n\"}],\n \"a\": 1.50}").unwrap();
        assert_eq!(a, r#"{"a":1.5,"b":[1,{"y":"ä\n","z":null}]}"#);
        assert_eq!(canonical(&a).as_deref(), Ok(a.as_str()));
        assert_eq!(canonical("  ").as_deref(), Ok("{}"));
        assert_eq!(canonical("[]"), Err(ConfigError::NoObject));
        assert!(matches!(canonical("{"), Err(ConfigError::Syntax { .. })));
        assert!(matches!(canonical(&" ".repeat(BYTES + 1)), Err(ConfigError::TooLarge { .. })));
        // As deep as the reader allows, and not deeper.
        assert!(canonical(&("{\"a\":".to_owned() + &"[".repeat(5000))).is_err());
    }
}
