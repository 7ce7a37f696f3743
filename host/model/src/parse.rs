//! The strict parser of amounts. It reads ASCII decimal numbers exactly, never
//! through floating point, and refuses everything else by the field's name.

use crate::amount::{Iops, MbPerSec, Mib, MilliCards, MilliCores};
use thiserror::Error;

/// A value that was refused: which field, what it held, what it may hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {value:?} is refused: expected {expected}")]
pub struct FieldError {
    /// The field's name as the user writes it.
    pub field: String,
    /// What was given, cut to 64 characters.
    pub value: String,
    /// What is accepted, with an example.
    pub expected: String,
}

impl FieldError {
    /// Refuses `value` in `field`.
    pub fn new(field: &str, value: &str, expected: impl Into<String>) -> Self {
        let value = value.chars().take(64).collect();
        Self { field: field.to_owned(), value, expected: expected.into() }
    }
}

/// A non-negative decimal `digits[.digits]` as an exact fraction
/// `(mantissa, decimals)`, or `None`.
fn decimal(text: &str) -> Option<(u128, u32)> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let dotted = text.contains('.');
    if whole.is_empty() || (dotted && rest.is_empty()) || !digits(whole) || !digits(rest) {
        return None;
    }
    // 25 digits before and 9 after the point are more than any amount needs.
    if whole.len() > 25 || rest.len() > 9 {
        return None;
    }
    let mantissa = format!("{whole}{rest}").parse().ok()?;
    Some((mantissa, rest.len() as u32))
}

/// `text` times `scale` as an integer; `None` if it is no number or not whole.
fn scaled(text: &str, scale: u128) -> Option<u64> {
    let (mantissa, decimals) = decimal(text)?;
    let product = mantissa.saturating_mul(scale);
    let divisor = 10u128.pow(decimals);
    (product % divisor == 0).then(|| u64::try_from(product / divisor).unwrap_or(u64::MAX))
}

/// Cards: `4`, `0.5` or `500m`, in steps of `step` (100 on the command line,
/// 1 inside).
pub fn gpu(field: &str, text: &str, step: MilliCards) -> Result<MilliCards, FieldError> {
    let step = step.0.max(1);
    let parsed = match text.strip_suffix('m') {
        Some(milli) => scaled(milli, 1),
        None => scaled(text, 1000),
    };
    match parsed {
        // More than can be counted stays the largest whole number of cards.
        Some(u64::MAX) => Ok(MilliCards(u64::MAX - u64::MAX % 1000)),
        Some(n) if n % step == 0 => Ok(MilliCards(n)),
        _ => {
            let step = MilliCards(step);
            let expected = format!("cards in steps of {step}, such as 0.5, 500m or 4");
            Err(FieldError::new(field, text, expected))
        }
    }
}

/// Cores: `8`, `0.5` or `500m`; `k`, `M`, `G`, `T`, `P` and `E` for limits.
pub fn cpu(field: &str, text: &str) -> Result<MilliCores, FieldError> {
    let suffixes: [(&str, u128); 7] = [
        ("m", 1),
        ("k", 1_000_000),
        ("M", 1_000_000_000),
        ("G", 1_000_000_000_000),
        ("T", 1_000_000_000_000_000),
        ("P", 1_000_000_000_000_000_000),
        ("E", 1_000_000_000_000_000_000_000),
    ];
    let parsed = suffixes
        .iter()
        .find_map(|(suffix, scale)| text.strip_suffix(suffix).map(|n| scaled(n, *scale)))
        .unwrap_or_else(|| scaled(text, 1000));
    parsed
        .map(MilliCores)
        .ok_or_else(|| FieldError::new(field, text, "cores, such as 8, 0.5 or 500m"))
}

/// Memory: `40960` or `40960Mi` (MiB), `32Gi`, `1.5Ti`. Decimal units (MB, GB)
/// are refused: they rarely mean a whole number of MiB.
pub fn memory(field: &str, text: &str) -> Result<Mib, FieldError> {
    let suffixes: [(&str, u128); 5] =
        [("Mi", 1), ("Gi", 1 << 10), ("Ti", 1 << 20), ("Pi", 1 << 30), ("Ei", 1 << 40)];
    let parsed = suffixes
        .iter()
        .find_map(|(suffix, scale)| text.strip_suffix(suffix).map(|n| scaled(n, *scale)))
        .unwrap_or_else(|| scaled(text, 1));
    parsed.map(Mib).ok_or_else(|| {
        let expected = "a whole number of MiB, such as 40960, 40960Mi or 40Gi (not MB or GB)";
        FieldError::new(field, text, expected)
    })
}

/// A plain whole number between `min` and `max`.
pub fn integer(field: &str, text: &str, min: u64, max: u64) -> Result<u64, FieldError> {
    scaled(text, 1).filter(|n| (min..=max).contains(n)).ok_or_else(|| {
        let expected = if max == u64::MAX {
            format!("a whole number from {min}")
        } else {
            format!("a whole number from {min} to {max}")
        };
        FieldError::new(field, text, expected)
    })
}

/// Disk bandwidth in MB/s: `500`.
pub fn bandwidth(field: &str, text: &str) -> Result<MbPerSec, FieldError> {
    integer(field, text, 0, u64::MAX).map(MbPerSec)
}

/// Disk operations a second: `2000`.
pub fn iops(field: &str, text: &str) -> Result<Iops, FieldError> {
    integer(field, text, 0, u64::MAX).map(Iops)
}

/// `true` or `false`.
pub fn flag(field: &str, text: &str) -> Result<bool, FieldError> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(FieldError::new(field, text, "true or false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STEP: MilliCards = MilliCards(100);

    #[test]
    fn accepted_amounts_are_exact() {
        assert_eq!(gpu("gpu", "0.5", STEP), Ok(MilliCards(500)));
        assert_eq!(gpu("gpu", "500m", STEP), Ok(MilliCards(500)));
        assert_eq!(gpu("gpu", "0.3", STEP), Ok(MilliCards(300)));
        assert_eq!(cpu("cpu", "500m"), Ok(MilliCores(500)));
        assert_eq!(cpu("cpu", "1E"), Ok(MilliCores(u64::MAX)));
        for same in ["8000", "8000Mi", "7.8125Gi"] {
            assert_eq!(memory("gpu-memory", same), Ok(Mib(8000)), "{same}");
        }
        assert_eq!(memory("memory", "32Gi"), Ok(Mib(32768)));
    }

    #[test]
    fn everything_else_is_refused_by_field_name() {
        let bad = [
            "NaN", "inf", "-0.5", "-4", "0.05", "1e400", "0,5", "０.５", "", " 1", "1 ", "+1",
            ".5", "5.", "0x10", "1_000", "½", "0.55",
        ];
        for text in bad {
            let error = gpu("gpu", text, STEP).unwrap_err();
            assert!(error.to_string().starts_with("gpu: "), "{text}: {error}");
        }
        for text in ["8000MB", "8GB", "1.5", "8000 Mi", "-1", "8000M", "1e3"] {
            assert!(memory("gpu-memory", text).is_err(), "{text}");
        }
        assert!(cpu("cpu", "0.0005").is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*") {
            let _ = (gpu("gpu", &text, STEP), cpu("cpu", &text), memory("memory", &text));
        }

        #[test]
        fn what_is_printed_is_read_again(n in 0u64..u64::MAX / 1000) {
            prop_assert_eq!(gpu("gpu", &MilliCards(n).to_string(), MilliCards(1)), Ok(MilliCards(n)));
            prop_assert_eq!(cpu("cpu", &MilliCores(n).to_string()), Ok(MilliCores(n)));
            prop_assert_eq!(memory("memory", &Mib(n).to_string()), Ok(Mib(n)));
        }
    }
}
