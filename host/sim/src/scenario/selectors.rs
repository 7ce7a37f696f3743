//! Labels, selectors, taints and tolerations as Kubernetes writes them.

use crater_model::FieldError;
use crater_model::select::{Condition, Effect, Labels, Operator, Selector, Taint, Toleration};
use std::sync::Arc;

/// `key=value,key=value`.
pub fn labels(field: &str, text: &str) -> Result<Labels, FieldError> {
    let pair = |part: &str| {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        if key.is_empty() {
            return Err(FieldError::new(field, text, "labels, such as zone=a,tier=fast"));
        }
        Ok((Arc::from(key), Arc::from(value)))
    };
    if text.is_empty() { Ok(Labels::new()) } else { text.split(',').map(pair).collect() }
}

/// `key=value:Effect,key:Effect`.
pub fn taints(field: &str, text: &str) -> Result<Vec<Taint>, FieldError> {
    let taint = |part: &str| {
        let expected = "taints, such as gpu=shared:NoSchedule or spot:NoExecute";
        let refused = || FieldError::new(field, part, expected);
        let (mark, effect) = part.rsplit_once(':').ok_or_else(refused)?;
        let (key, value) = mark.split_once('=').unwrap_or((mark, ""));
        let effect = self::effect(effect).filter(|_| !key.is_empty()).ok_or_else(refused)?;
        Ok(Taint { key: key.into(), value: value.into(), effect })
    };
    if text.is_empty() { Ok(vec![]) } else { text.split(',').map(taint).collect() }
}

/// `key=value:Effect`, `key` (any value and effect), `*` (any taint).
pub fn tolerations(field: &str, text: &str) -> Result<Vec<Toleration>, FieldError> {
    let toleration = |part: &str| {
        let expected = "tolerations, such as gpu=shared:NoSchedule, spot or *";
        let refused = || FieldError::new(field, part, expected);
        let (mark, effect) = match part.rsplit_once(':') {
            Some((mark, effect)) => (mark, Some(self::effect(effect).ok_or_else(refused)?)),
            None => (part, None),
        };
        let (key, value) = match mark.split_once('=') {
            Some((key, value)) => (key, Some(value.into())),
            None => (mark, None),
        };
        if key.is_empty() {
            return Err(refused());
        }
        Ok(Toleration { key: if key == "*" { "" } else { key }.into(), value, effect })
    };
    text.split(',').map(toleration).collect()
}

fn effect(text: &str) -> Option<Effect> {
    Some(match text {
        "NoSchedule" => Effect::NoSchedule,
        "PreferNoSchedule" => Effect::PreferNoSchedule,
        "NoExecute" => Effect::NoExecute,
        _ => return None,
    })
}

/// Conditions joined by `,` (all of them), in alternatives joined by `|`:
/// `zone=a`, `zone!=b`, `zone in (a,b)`, `zone notin (a)`, `gen>8`, `gen<8`,
/// `gpu` (there is one), `!old` (there is none).
pub fn selectors(field: &str, text: &str) -> Result<Vec<Selector>, FieldError> {
    let alternative = |part: &str| {
        let conditions = outside_brackets(part).into_iter().map(|c| condition(field, c.trim()));
        Ok(Selector { all: conditions.collect::<Result<_, _>>()? })
    };
    text.split('|').map(alternative).collect()
}

/// Splits at commas that are not in brackets.
fn outside_brackets(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0, 0, vec![]);
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

fn condition(field: &str, text: &str) -> Result<Condition, FieldError> {
    let refused =
        || FieldError::new(field, text, "conditions, such as zone=a, zone in (a,b), gen>8 or !old");
    let list = |text: &str| -> Option<Vec<Arc<str>>> {
        let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(inner.split(',').map(|v| v.trim().into()).collect())
    };
    let one = |value: &str| Some(vec![Arc::from(value.trim())]);
    let signs: [(&str, Operator); 4] =
        [("!=", Operator::NotIn), (">", Operator::Gt), ("<", Operator::Lt), ("=", Operator::In)];
    let (key, operator, values) = if let Some((key, rest)) = text.split_once(" in ") {
        (key, Operator::In, list(rest))
    } else if let Some((key, rest)) = text.split_once(" notin ") {
        (key, Operator::NotIn, list(rest))
    } else if let Some((sign, operator)) = signs.iter().find(|(sign, _)| text.contains(sign)) {
        let (key, value) = text.split_once(sign).unwrap_or_default();
        (key, *operator, one(value))
    } else if let Some(key) = text.strip_prefix('!') {
        (key, Operator::DoesNotExist, Some(vec![]))
    } else {
        (text, Operator::Exists, Some(vec![]))
    };
    let key = key.trim();
    match values {
        Some(values) if !key.is_empty() && !key.contains(char::is_whitespace) => {
            Ok(Condition { key: key.into(), operator, values })
        }
        _ => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str, on: &str) -> bool {
        let labels = labels("labels", on).unwrap();
        selectors("selector", selector).unwrap().iter().any(|s| s.matches(&labels))
    }

    #[test]
    fn selectors_read_as_in_kubernetes() {
        let on = "zone=a,gen=9,gpu=";
        for yes in ["zone=a", "zone in (a, b)", "gen>8,zone!=b", "gpu", "!old", "zone=x|gen<10"] {
            assert!(matches(yes, on), "{yes}");
        }
        for no in ["zone=b", "zone notin (a)", "gen>9", "!gpu", "zone=a,old"] {
            assert!(!matches(no, on), "{no}");
        }
        for bad in ["", "zone in a", "a b", "=x"] {
            assert!(selectors("selector", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn taints_and_what_bears_them() {
        let taints = taints("taints", "gpu=x:NoSchedule,spot:NoExecute").unwrap();
        let borne = |text: &str| {
            let tolerations = tolerations("tolerate", text).unwrap();
            crater_model::select::untolerated(&taints, &tolerations).map(|t| t.key.to_string())
        };
        assert_eq!(borne("*"), None);
        assert_eq!(borne("gpu=x:NoSchedule,spot"), None);
        assert_eq!(borne("gpu=y,spot").as_deref(), Some("gpu"));
        assert!(super::taints("taints", "gpu").is_err());
        assert!(super::taints("taints", "gpu:Never").is_err());
    }
}
