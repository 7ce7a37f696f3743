//! Amounts and times for people.

use crater_model::{Mib, MilliCards};

/// Share of cards, a dash for none.
pub fn gpu(milli: u64) -> String {
    if milli == 0 { "-".into() } else { MilliCards(milli).to_string() }
}

/// Memory, a dash for none.
pub fn memory(mib: u64) -> String {
    if mib == 0 { "-".into() } else { Mib(mib).to_string() }
}

/// Memory to a tenth of a GiB or TiB, for sums.
pub fn roughly(mib: u64) -> String {
    match mib {
        0..10_240 => Mib(mib).to_string(),
        10_240..10_485_760 if mib.is_multiple_of(1024) => format!("{}Gi", mib / 1024),
        10_240..10_485_760 => format!("{:.1}Gi", mib as f64 / 1024.0),
        _ => format!("{:.1}Ti", mib as f64 / 1_048_576.0),
    }
}

/// Part of a whole in percent.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { format!("{:.1}%", part as f64 * 100.0 / whole as f64) }
}

/// How long ago a moment was, from RFC 3339.
pub fn age(moment: &str) -> String {
    let Ok(then) = moment.parse::<jiff::Timestamp>() else { return moment.to_owned() };
    let now = jiff::Timestamp::now().as_second();
    seconds(u64::try_from(now - then.as_second()).unwrap_or(0))
}

/// A moment to the second.
pub fn moment(text: &str) -> String {
    let Ok(time) = text.parse::<jiff::Timestamp>() else { return text.to_owned() };
    jiff::Timestamp::from_second(time.as_second())
        .map_or_else(|_| text.to_owned(), |t| t.to_string())
}

/// A span of time in its greatest units.
pub fn seconds(n: u64) -> String {
    match n {
        0..120 => format!("{n}s"),
        120..600 if !n.is_multiple_of(60) => format!("{}m{}s", n / 60, n % 60),
        120..7200 => format!("{}m", n / 60),
        7200..172_800 => format!("{}h", n / 3600),
        _ => format!("{}d", n / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short_and_ages_in_one_unit() {
        assert_eq!((gpu(0), gpu(500), gpu(4000)), ("-".into(), "0.5".into(), "4".into()));
        assert_eq!((memory(40960), memory(0)), ("40Gi".into(), "-".into()));
        assert_eq!((roughly(5_242_880), roughly(41_000)), ("5120Gi".into(), "40.0Gi".into()));
        let spans = [59, 125, 3600, 7200, 200_000].map(seconds);
        assert_eq!(spans, ["59s", "2m5s", "60m", "2h", "2d"]);
        assert_eq!(moment("2026-12-01T10:58:01.123Z"), "2026-12-01T10:58:01Z");
        assert_eq!((percent(1, 3), percent(0, 0)), ("33.3%".into(), "-".into()));
    }
}
