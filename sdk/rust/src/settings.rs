//! The queue's configuration of a policy: a flat JSON object.
//!
//! A reader of its own, for three reasons: every error names the setting and
//! what it may be; a setting that nobody reads is refused; and a component
//! stays a third of the size that it has with a general JSON library. A policy
//! that needs nested configuration can bring such a library: `configure` gets
//! the text.

mod json;

use json::Value;
use std::ops::RangeInclusive;

/// The settings that were given. Each is read once by its name, with its
/// default; [`end`](Self::end) refuses what is left.
///
/// ```
/// use crater_sdk::Settings;
/// let mut settings = Settings::read(r#"{"weight": 3, "by": "nodes"}"#).unwrap();
/// assert_eq!(settings.int("weight", 0..=10, 1), Ok(3));
/// assert_eq!(settings.choice("by", &["cards", "nodes"], 0), Ok(1));
/// assert_eq!(settings.flag("strict", true), Ok(true));
/// assert_eq!(settings.end(), Ok(()));
/// ```
#[derive(Clone, Debug)]
pub struct Settings(Vec<(String, Value)>);

impl Settings {
    /// The settings in a JSON object; an empty text counts as `{}`.
    pub fn read(config: &str) -> Result<Self, String> {
        json::object(config).map(Self)
    }

    /// For a policy without configuration: refuses anything but `{}`.
    pub fn none(config: &str) -> Result<(), String> {
        Self::read(config)?.end()
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(n, _)| n == name)?;
        Some(self.0.swap_remove(at).1)
    }

    /// A whole number in a range.
    pub fn int(
        &mut self,
        name: &str,
        range: RangeInclusive<i32>,
        default: i32,
    ) -> Result<i32, String> {
        let value = match self.take(name) {
            None => return Ok(default),
            Some(Value::Int(value)) => i32::try_from(value).ok().filter(|v| range.contains(v)),
            Some(_) => None,
        };
        value.ok_or_else(|| {
            let (from, to) = (range.start(), range.end());
            format!("{name}: expected a whole number from {from} to {to}")
        })
    }

    /// `true` or `false`.
    pub fn flag(&mut self, name: &str, default: bool) -> Result<bool, String> {
        match self.take(name) {
            None => Ok(default),
            Some(Value::Flag(value)) => Ok(value),
            Some(_) => Err(format!("{name}: expected true or false")),
        }
    }

    /// One of some words: its position among them.
    pub fn choice(&mut self, name: &str, of: &[&str], default: usize) -> Result<usize, String> {
        let at = match self.take(name) {
            None => return Ok(default),
            Some(Value::Text(text)) => of.iter().position(|word| *word == text),
            Some(_) => None,
        };
        at.ok_or_else(|| format!("{name}: expected one of {}", of.join(", ")))
    }

    /// Any text.
    pub fn text(&mut self, name: &str, default: &str) -> Result<String, String> {
        match self.take(name) {
            None => Ok(default.to_owned()),
            Some(Value::Text(text)) => Ok(text),
            Some(_) => Err(format!("{name}: expected a text")),
        }
    }

    /// Refuses settings that were not read.
    pub fn end(self) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(format!("{name}: no such setting")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(config: &str) -> Result<i32, String> {
        let mut settings = Settings::read(config)?;
        let n = settings.int("n", -5..=5, 1)?;
        settings.end()?;
        Ok(n)
    }

    #[test]
    fn a_number_is_whole_and_in_range_or_refused_by_its_name() {
        assert_eq!((int(""), int("{}"), int(r#" {"n" : -5} "#)), (Ok(1), Ok(1), Ok(-5)));
        for bad in ["6", "1.5", "1e1", "\"1\"", "true", "null", "[1]", "99999999999999999999"] {
            let error = int(&format!(r#"{{"n": {bad}}}"#)).unwrap_err();
            assert_eq!(error, "n: expected a whole number from -5 to 5", "{bad}");
        }
    }

    #[test]
    fn what_nobody_reads_is_refused() {
        assert_eq!(int(r#"{"m": 1}"#), Err("m: no such setting".into()));
        assert_eq!(int(r#"{"n": 1, "n": 2}"#), Err("n: given twice".into()));
        assert!(Settings::none("{ }").is_ok());
        assert!(Settings::none(r#"{"any": {"thing": [1, "}"]}}"#).unwrap_err().starts_with("any"));
    }

    #[test]
    fn words_and_flags_say_what_they_may_be() {
        let mut settings = Settings::read(r#"{"a": "c", "b": 1, "t": "x\u00e9\n\"y\""}"#).unwrap();
        assert_eq!(settings.choice("a", &["a", "b"], 0), Err("a: expected one of a, b".into()));
        assert_eq!(settings.flag("b", true), Err("b: expected true or false".into()));
        assert_eq!(settings.text("t", ""), Ok("xé\n\"y\"".into()));
    }
}
