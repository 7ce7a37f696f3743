//! Kubernetes quantities, exactly: never through floating point.

use crater_model::{FieldError, Mib, MilliCores};

/// Billionths of a unit, the finest that a quantity can say.
const NANO: u128 = 1_000_000_000;

/// Which way what is no whole number of our units goes: requests up, so that
/// nothing is promised twice; what a node has down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// For requests.
    Up,
    /// For capacities.
    Down,
}

/// A quantity in billionths; `None` if it is none or negative.
fn nano(text: &str) -> Option<u128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || whole.len() > 25 {
        return None;
    }
    let digits: String = format!("{fraction:0<9}").chars().take(9).collect();
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut value = whole.saturating_mul(NANO).saturating_add(digits.parse().ok()?);
    // What is finer than a billionth counts as one.
    value += u128::from(fraction.len() > 9 && fraction[9..].bytes().any(|b| b != b'0'));
    let scale = |factor: u128| Some(value.saturating_mul(factor));
    match suffix {
        "" => Some(value),
        "n" => Some(value.div_ceil(NANO)),
        "u" => Some(value.div_ceil(1_000_000)),
        "m" => Some(value.div_ceil(1000)),
        "k" => scale(1000),
        "M" => scale(1_000_000),
        "G" => scale(NANO),
        "T" => scale(1000 * NANO),
        "P" => scale(1_000_000 * NANO),
        "E" => scale(NANO * NANO),
        "Ki" => scale(1 << 10),
        "Mi" => scale(1 << 20),
        "Gi" => scale(1 << 30),
        "Ti" => scale(1 << 40),
        "Pi" => scale(1 << 50),
        "Ei" => scale(1 << 60),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let factor = 10u128.checked_pow(exponent.unsigned_abs())?;
            if exponent < 0 { Some(value.div_ceil(factor)) } else { scale(factor) }
        }
    }
}

fn units(field: &str, text: &str, unit: u128, rounding: Rounding) -> Result<u64, FieldError> {
    let nano = nano(text)
        .ok_or_else(|| FieldError::new(field, text, "a quantity, such as 500m, 2 or 16Gi"))?;
    let count = match rounding {
        Rounding::Up => nano.div_ceil(unit),
        Rounding::Down => nano / unit,
    };
    Ok(u64::try_from(count).unwrap_or(u64::MAX))
}

/// Cores.
pub fn cpu(field: &str, text: &str, rounding: Rounding) -> Result<MilliCores, FieldError> {
    units(field, text, NANO / 1000, rounding).map(MilliCores)
}

/// Bytes, in MiB.
pub fn memory(field: &str, text: &str, rounding: Rounding) -> Result<Mib, FieldError> {
    units(field, text, NANO << 20, rounding).map(Mib)
}

/// Things that are counted, such as pods and devices.
pub fn count(field: &str, text: &str, rounding: Rounding) -> Result<u64, FieldError> {
    units(field, text, NANO, rounding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact_and_round_to_the_safe_side() {
        let up = Rounding::Up;
        assert_eq!(cpu("cpu", "500m", up), Ok(MilliCores(500)));
        assert_eq!(cpu("cpu", "2", up), Ok(MilliCores(2000)));
        assert_eq!(cpu("cpu", "0.1", up), Ok(MilliCores(100)));
        assert_eq!(cpu("cpu", "1500000n", up), Ok(MilliCores(2)));
        assert_eq!(cpu("cpu", "1e2", up), Ok(MilliCores(100_000)));
        assert_eq!(memory("memory", "16Gi", up), Ok(Mib(16_384)));
        assert_eq!(memory("memory", "1G", up), Ok(Mib(954)));
        assert_eq!(memory("memory", "1G", Rounding::Down), Ok(Mib(953)));
        assert_eq!(memory("memory", "129e6", up), Ok(Mib(124)));
        assert_eq!(count("pods", "110", Rounding::Down), Ok(110));
        assert_eq!(cpu("cpu", "9999999999999999999E", up), Ok(MilliCores(u64::MAX)));
    }

    #[test]
    fn what_is_no_quantity_is_refused_by_its_field() {
        for text in ["", "-1", "NaN", "1 Gi", "1.2.3", ".", "1e999", "½", "1Kb"] {
            let error = memory("memory", text, Rounding::Up).unwrap_err();
            assert_eq!(error.field, "memory", "{text}");
        }
    }
}
