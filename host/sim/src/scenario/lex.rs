//! Lines into words, and the small values that scenarios are made of.

use crater_model::FieldError;
use std::sync::Arc;
use std::time::Duration;

/// A line that says something, with its number from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number; of a continued line that of its first part.
    pub number: usize,
    /// Its words, quotes taken off.
    pub words: Vec<String>,
}

/// Splits a text into lines of words. `#` before a word begins a comment; a
/// line that ends in `\` goes on in the next.
pub fn lines(text: &str) -> Result<Vec<Line>, (usize, String)> {
    let mut all = vec![];
    let mut open: Option<Line> = None;
    for (i, raw) in text.lines().enumerate() {
        let (raw, goes_on) = match raw.trim_end().strip_suffix('\\') {
            Some(rest) => (rest, true),
            None => (raw, false),
        };
        let words = words(raw).map_err(|problem| (i + 1, problem))?;
        let line = open.get_or_insert_with(|| Line { number: i + 1, words: vec![] });
        line.words.extend(words);
        if !goes_on {
            all.extend(open.take().filter(|line| !line.words.is_empty()));
        }
    }
    all.extend(open.filter(|line| !line.words.is_empty()));
    Ok(all)
}

fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = vec![];
    let mut word = None::<String>;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => return Ok(words),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match quote {
        Some(q) => Err(format!("{q} that is closed on the same line")),
        None => Ok(words),
    }
}

/// Names in a list: `a`, `a,b`, `j1..j8`.
pub fn names(text: &str) -> Result<Vec<Arc<str>>, String> {
    let mut all = vec![];
    for part in text.split(',') {
        let Some((from, to)) = part.split_once("..") else {
            if part.is_empty() {
                return Err("a name, a list a,b or a range j1..j8".to_owned());
            }
            all.push(part.into());
            continue;
        };
        let digits = |s: &str| s.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |i| i + 1);
        let ((stem, low), (stem2, high)) = (from.split_at(digits(from)), to.split_at(digits(to)));
        let bounds = (low.parse::<u32>(), high.parse::<u32>());
        match bounds {
            (Ok(low), Ok(high)) if stem == stem2 && low <= high && high - low < 100_000 => {
                all.extend((low..=high).map(|n| Arc::from(format!("{stem}{n}"))));
            }
            _ => return Err(format!("a range such as j1..j8 in place of {part}")),
        }
    }
    Ok(all)
}

/// A span of time: `90s`, `10m`, `1h30m`, `500ms`, `2d`.
pub fn duration(field: &str, text: &str) -> Result<Duration, FieldError> {
    let refused = || FieldError::new(field, text, "a span of time, such as 90s, 10m or 1h30m");
    let mut rest = text;
    let mut total = 0u64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(refused)?;
        let number: u64 = rest[..end].parse().map_err(|_| refused())?;
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(refused()),
        };
        total = number.checked_mul(unit).and_then(|n| total.checked_add(n)).ok_or_else(refused)?;
        rest = &rest[end..];
    }
    if text.is_empty() { Err(refused()) } else { Ok(Duration::from_millis(total)) }
}

/// A span of time as a scenario writes it.
pub fn spell(span: Duration) -> String {
    let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    if !ms.is_multiple_of(1000) {
        return format!("{ms}ms");
    }
    let secs = ms / 1000;
    match (secs / 3600, secs / 60 % 60, secs % 60) {
        (0, 0, s) => format!("{s}s"),
        (0, m, 0) => format!("{m}m"),
        (0, m, s) => format!("{m}m{s}s"),
        (h, 0, 0) => format!("{h}h"),
        (h, m, 0) => format!("{h}h{m}m"),
        (h, m, s) => format!("{h}h{m}m{s}s"),
    }
}

/// Words `key=value`, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(
    /// Key and value.
    pub Vec<(String, String)>,
);

impl Fields {
    /// Splits each word at its first `=`.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let split = |word: &String| match word.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
            _ => Err(format!("key=value in place of {word:?}")),
        };
        words.iter().map(split).collect::<Result<_, _>>().map(Self)
    }

    /// The value of a key; the last one counts.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// These after others, which they override.
    #[must_use]
    pub fn over(&self, others: &Self) -> Self {
        Self(others.0.iter().chain(&self.0).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_quotes_and_continuations() {
        let text = "a b=1 # no\n\n# nothing\nc \"d # e\" f='g \"h\"' \\\n  i\n";
        let found = lines(text).unwrap();
        assert_eq!(found[0], Line { number: 1, words: vec!["a".into(), "b=1".into()] });
        assert_eq!(found[1].words, ["c", "d # e", "f=g \"h\"", "i"]);
        assert_eq!((found[1].number, found.len()), (4, 2));
        assert_eq!(lines("x\ny \"z").unwrap_err().0, 2);
    }

    #[test]
    fn names_and_ranges() {
        let text = |list: &str| names(list).map(|n| n.join(" "));
        assert_eq!(text("j1..j3,k").as_deref(), Ok("j1 j2 j3 k"));
        assert_eq!(text("n-9..n-11").as_deref(), Ok("n-9 n-10 n-11"));
        for bad in ["", "a,,b", "j3..j1", "j1..k2", "a..b"] {
            assert!(names(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn spans_are_read_and_spelt() {
        for (text, secs) in [("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172_800)] {
            assert_eq!(duration("t", text), Ok(Duration::from_secs(secs)));
        }
        for bad in ["", "10", "m", "1.5h", "-1s", "1s5", "99999999999999999999s"] {
            assert!(duration("t", bad).is_err(), "{bad}");
        }
        for text in ["90ms", "5s", "1m30s", "10m", "1h1m1s", "48h"] {
            assert_eq!(spell(duration("t", text).unwrap()), text);
        }
    }
}
