//! The queue's configuration of a policy.

/// For a policy without configuration: refuses anything but `{}` or nothing,
/// so that a setting that would be ignored is told.
pub fn no_config(config: &str) -> Result<(), String> {
    let empty = config.split_whitespace().collect::<String>();
    if matches!(empty.as_str(), "" | "{}" | "null") {
        return Ok(());
    }
    Err("this policy has no configuration: expected {}".into())
}

/// Reads the configuration. An empty text counts as `{}`. Give the type
/// `#[serde(default, deny_unknown_fields)]`, so that every setting has a
/// default and a misspelt one is refused by its name.
#[cfg(feature = "json")]
pub fn from_json<'a, T: serde::Deserialize<'a>>(config: &'a str) -> Result<T, String> {
    let text = if config.trim().is_empty() { "{}" } else { config };
    serde_json::from_str(text).map_err(|error| match field(text, &error) {
        Some(name) => format!("{name}: {error}"),
        None => error.to_string(),
    })
}

/// The last name before the place of the error.
#[cfg(feature = "json")]
fn field<'a>(text: &'a str, error: &serde_json::Error) -> Option<&'a str> {
    let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let read = text.get(..before + error.column())?;
    let (head, _) = read.rsplit_once(':')?;
    let name = head.trim_end().strip_suffix('"')?;
    name.rsplit_once('"').map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_nobody_reads_are_refused() {
        assert!(no_config("").is_ok() && no_config(" { }\n").is_ok());
        assert!(no_config(r#"{"weight": 1}"#).is_err());
    }

    #[cfg(feature = "json")]
    #[test]
    fn an_unknown_setting_is_named() {
        #[derive(Debug, Default, PartialEq, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        struct Config {
            weight: i32,
        }
        assert_eq!(from_json::<Config>(""), Ok(Config { weight: 0 }));
        let error = from_json::<Config>(r#"{"wieght": 1}"#).unwrap_err();
        assert!(error.contains("wieght"), "{error}");
        let error = from_json::<Config>("{\n \"weight\": \"much\"}").unwrap_err();
        assert!(error.starts_with("weight: "), "{error}");
    }
}
