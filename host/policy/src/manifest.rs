//! What a policy says of itself, checked once and then trusted.

use crate::abi::ManifestOut;
use crater_engine::policy::{Interface, Manifest};
use crater_model::columns;
use std::collections::BTreeSet;
use thiserror::Error;

/// All texts and lists of a manifest together, in bytes.
const MANIFEST_BYTES: usize = 256 << 10;
const VERSION_CHARS: usize = 63;
const NAME_CHARS: usize = 63;
const REASON_CHARS: usize = 200;
/// A label's prefix, a slash and its name.
const LABEL_BYTES: usize = 317;
const LABELS: usize = 64;
const OPTIONS: usize = 64;

/// A manifest that cannot be used. The text says what its author must change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("describe: {field} {problem}")]
pub struct ManifestError {
    /// The field.
    pub field: &'static str,
    /// What is wrong with it, with the value.
    pub problem: String,
}

fn bad(field: &'static str, problem: impl Into<String>) -> ManifestError {
    ManifestError { field, problem: problem.into() }
}

/// Checks and normalises. Ids of columns that this host does not know are
/// dropped: the policy copes without, or it would not run on an older host.
pub(crate) fn check(out: ManifestOut, exports: Vec<Interface>) -> Result<Manifest, ManifestError> {
    check_size(&out)?;
    check_name("name", &out.name)?;
    check_version(&out.version)?;
    check_labels(&out.labels)?;
    check_options(&out.options)?;
    check_reasons(&out.reasons)?;
    check_schema(&out.schema)?;
    let wants: BTreeSet<u32> =
        out.wants.into_iter().filter(|id| columns::info(*id).is_some()).collect();
    Ok(Manifest {
        name: out.name,
        version: out.version,
        wants: wants.into_iter().collect(),
        labels: out.labels,
        options: out.options,
        reasons: out.reasons.into_iter().map(|(code, text)| (code, text.into())).collect(),
        schema: out.schema,
        exports,
    })
}

fn check_size(out: &ManifestOut) -> Result<(), ManifestError> {
    let texts = [&out.name, &out.version, &out.schema].into_iter().map(String::len).sum::<usize>()
        + out.labels.iter().map(|l| l.len() + 8).sum::<usize>()
        + out.reasons.iter().map(|(_, t)| t.len() + 12).sum::<usize>();
    let bytes = texts + 4 * out.wants.len() + 8 * out.options.len();
    if bytes > MANIFEST_BYTES {
        return Err(bad(
            "manifest",
            format!("has {bytes} bytes; all its lists and texts may have {MANIFEST_BYTES}"),
        ));
    }
    Ok(())
}

fn check_name(field: &'static str, name: &str) -> Result<(), ManifestError> {
    let fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.is_empty() || name.len() > NAME_CHARS || !name.bytes().all(fine) {
        let shown: String = name.chars().take(80).collect();
        return Err(bad(
            field,
            format!("is {shown:?}; it must be 1 to {NAME_CHARS} lower-case letters, digits or '-'"),
        ));
    }
    Ok(())
}

fn check_version(version: &str) -> Result<(), ManifestError> {
    let chars = version.chars().count();
    if chars == 0 || chars > VERSION_CHARS || version.chars().any(char::is_control) {
        return Err(bad(
            "version",
            format!("has {chars} characters; it must have 1 to {VERSION_CHARS} printable ones"),
        ));
    }
    Ok(())
}

fn check_labels(labels: &[String]) -> Result<(), ManifestError> {
    if labels.len() > LABELS {
        return Err(bad("labels", format!("has {} entries; {LABELS} are allowed", labels.len())));
    }
    let mut seen = BTreeSet::new();
    for label in labels {
        if label.is_empty() || label.len() > LABEL_BYTES || label.chars().any(char::is_control) {
            return Err(bad("labels", format!("has {:?}, which is no label's name", short(label))));
        }
        if !seen.insert(label) {
            return Err(bad("labels", format!("names {label:?} twice")));
        }
    }
    Ok(())
}

fn check_options(options: &[(u32, i32)]) -> Result<(), ManifestError> {
    if options.len() > OPTIONS {
        return Err(bad(
            "options",
            format!("has {} entries; {OPTIONS} are allowed", options.len()),
        ));
    }
    let mut seen = BTreeSet::new();
    for (id, value) in options {
        if !seen.insert(id) {
            return Err(bad("options", format!("gives option {id} twice")));
        }
        let range = match *id {
            columns::OPTION_SCOPE | columns::OPTION_NORMALISE => 0..=1,
            columns::OPTION_TIME_STEP | columns::OPTION_RANK_STEP => 1..=86_400,
            columns::OPTION_GROUP_BY => 0..=7,
            // For a newer host.
            _ => continue,
        };
        let name = columns::option(*id).map_or("?", |o| o.name);
        if !range.contains(value) {
            return Err(bad(
                "options",
                format!("gives {name} as {value}; it must be {} to {}", range.start(), range.end()),
            ));
        }
    }
    Ok(())
}

fn check_reasons(reasons: &[(i32, String)]) -> Result<(), ManifestError> {
    let mut seen = BTreeSet::new();
    for (code, text) in reasons {
        if *code <= 0 {
            return Err(bad(
                "reasons",
                format!("has code {code}; codes are positive (0 keeps a row, -n defers it)"),
            ));
        }
        if !seen.insert(code) {
            return Err(bad("reasons", format!("gives code {code} twice")));
        }
        let chars = text.chars().count();
        if chars == 0 || chars > REASON_CHARS || text.chars().any(char::is_control) {
            return Err(bad(
                "reasons",
                format!(
                    "has a text of {chars} characters for code {code}; \
                     it must have 1 to {REASON_CHARS} printable ones"
                ),
            ));
        }
    }
    Ok(())
}

fn check_schema(schema: &str) -> Result<(), ManifestError> {
    if schema.is_empty() {
        return Ok(());
    }
    match serde_json::from_str::<serde_json::Value>(schema) {
        Ok(serde_json::Value::Object(_) | serde_json::Value::Bool(_)) => Ok(()),
        Ok(_) => Err(bad("schema", "is JSON, but a JSON Schema is an object")),
        Err(error) => Err(bad("schema", format!("is not JSON: {error}"))),
    }
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> ManifestOut {
        ManifestOut {
            name: "spread".to_owned(),
            version: "1.0".to_owned(),
            wants: vec![207, 100, 207, 999_999],
            labels: vec!["rack".to_owned()],
            options: vec![(1, 1), (77, -5)],
            reasons: vec![(1, "too far".to_owned())],
            schema: r#"{"type":"object"}"#.to_owned(),
        }
    }

    fn problem(change: impl FnOnce(&mut ManifestOut)) -> String {
        let mut out = manifest();
        change(&mut out);
        check(out, Vec::new()).unwrap_err().to_string()
    }

    #[test]
    fn wants_are_sorted_unique_and_known() {
        let checked = check(manifest(), vec![Interface::Score]).unwrap();
        assert_eq!(checked.wants, [100, 207]);
        assert_eq!(checked.options, [(1, 1), (77, -5)]);
    }

    #[test]
    fn each_field_is_refused_with_what_to_change() {
        assert!(problem(|m| m.name = "Best Fit".to_owned()).contains("lower-case"));
        assert!(problem(|m| m.version.clear()).contains("version has 0"));
        assert!(problem(|m| m.labels.push("rack".to_owned())).contains("twice"));
        assert!(problem(|m| m.labels.push(String::new())).contains("no label"));
        assert!(problem(|m| m.options[0].1 = 2).contains("scope as 2; it must be 0 to 1"));
        assert!(problem(|m| m.options.push((1, 0))).contains("option 1 twice"));
        assert!(problem(|m| m.reasons[0].0 = 0).contains("codes are positive"));
        assert!(problem(|m| m.reasons.push((1, "x".to_owned()))).contains("code 1 twice"));
        assert!(problem(|m| m.reasons[0].1 = "x".repeat(201)).contains("201 characters"));
        assert!(problem(|m| m.schema = "{".to_owned()).contains("not JSON"));
        assert!(problem(|m| m.schema = "3".to_owned()).contains("object"));
        assert!(problem(|m| m.schema = "x".repeat(MANIFEST_BYTES)).contains("bytes"));
    }
}
