//! Numbers as people read them.

/// Puts a comma between thousands of a plain decimal number.
pub(super) fn grouped(number: &str) -> String {
    let (sign, rest) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, decimals) = rest.split_once('.').map_or((rest, None), |(w, d)| (w, Some(d)));
    let mut out = sign.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(decimals) = decimals {
        out.push('.');
        out.push_str(decimals);
    }
    out
}

/// A number with so many decimals; nothing if it is not finite.
pub(super) fn fixed(value: f64, places: u8) -> String {
    if !value.is_finite() {
        return String::new();
    }
    let text = format!("{value:.*}", usize::from(places));
    // What rounds to nothing has no sign.
    let nothing = text.chars().all(|c| matches!(c, '-' | '0' | '.'));
    grouped(if nothing { text.trim_start_matches('-') } else { &text })
}

/// Without zeros at the end of its decimals.
fn short(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// A value on an axis, so that the values of ticks over `span` differ.
pub(super) fn tick(value: f64, span: f64) -> String {
    let near_zero = value.abs() < span * 1e-9;
    let value = if near_zero { 0.0 } else { value };
    // Ticks are at least a hundredth of the span apart.
    if span > value.abs() * 0.05 {
        return figure(value);
    }
    let places = (2.0 - span.log10().floor()).clamp(0.0, 9.0);
    short(&fixed(value, places as u8)).to_owned()
}

/// A number with about four significant digits and no trailing zeros: `4.767`,
/// `12,345`, `1.25 M`. Nothing if it is not finite.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    let (scaled, suffix) = match size {
        _ if size >= 1e12 => {
            return if value.is_finite() { format!("{value:.3e}") } else { String::new() };
        }
        _ if size >= 1e9 => (value / 1e9, " G"),
        _ if size >= 1e6 => (value / 1e6, " M"),
        _ => (value, ""),
    };
    let places = match scaled.abs() {
        s if s >= 1000.0 => 0,
        s if s >= 100.0 => 1,
        s if s >= 10.0 => 2,
        s if s >= 0.1 || s == 0.0 => 3,
        s if s >= 1e-6 => 9,
        _ => return if value.is_nan() { String::new() } else { format!("{value:.2e}") },
    };
    let text = fixed(scaled, places);
    format!("{}{suffix}", short(&text))
}

/// Decimals that [`figure`] needs for the largest of some values, fewer if none
/// of them has so many.
pub(super) fn places<'a>(values: impl Iterator<Item = &'a f64> + Clone) -> u8 {
    let decimals = |v: f64| match figure(v).split_once('.') {
        Some((_, decimals)) if v.abs() < 1e6 => decimals.len().min(9) as u8,
        _ => 0,
    };
    let needed = values.clone().map(|v| decimals(*v)).max().unwrap_or(0);
    let largest = values.fold(0.0, |most: f64, v| most.max(v.abs()));
    let most = match largest {
        l if l >= 1000.0 => 0,
        l if l >= 100.0 => 1,
        l if l >= 10.0 => 2,
        l if l >= 0.1 => 3,
        _ => 9,
    };
    needed.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_grouped() {
        let all = [
            0.0,
            -0.0001,
            4.7666,
            12.0,
            -3.25,
            123.456,
            12_345.6,
            999_999.0,
            1_250_000.0,
            6.2e9,
            3.4e15,
            1e-9,
            0.05,
            f64::NAN,
            f64::INFINITY,
        ];
        let shown = all.map(figure).join(" | ");
        let expected = "0 | -0.0001 | 4.767 | 12 | -3.25 | 123.5 | 12,346 | 999,999 | 1.25 M | \
                        6.2 G | 3.400e15 | 1.00e-9 | 0.05 |  | ";
        assert_eq!(shown, expected);
        assert_eq!(tick(-2.2e-16, 1.6), "0");
        assert_eq!(tick(1_700_000_015.0, 585.0), "1,700,000,015");
        assert_eq!(tick(97.25, 1.5), "97.25");
        assert_eq!(tick(1e6, 2e6), "1 M");
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(grouped("-1234567.5"), "-1,234,567.5");
    }
}
