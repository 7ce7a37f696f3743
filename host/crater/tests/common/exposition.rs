//! A strict reader of Prometheus' text format 0.0.4: what it takes, every
//! scraper takes.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};

/// Labels in order of their names.
pub type Labels = BTreeMap<String, String>;

/// A metric with its samples.
#[derive(Debug, Default)]
pub struct Family {
    /// counter, gauge or histogram.
    pub kind: String,
    /// Name, labels, value.
    pub samples: Vec<(String, Labels, f64)>,
}

/// Reads a page; panics at the first line that is not as it must be.
pub fn read(page: &str) -> BTreeMap<String, Family> {
    assert!(page.ends_with('\n'), "the last line must end");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut now = String::new();
    let mut helped = BTreeSet::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("no help: {line}"));
            assert!(helped.insert(name.to_owned()), "a second HELP: {line}");
            assert!(!help.trim().is_empty(), "{line}");
            name.clone_into(&mut now);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or_else(|| panic!("no type: {line}"));
            assert_eq!(name, now, "TYPE follows HELP of the same name");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            let new = Family { kind: kind.to_owned(), samples: vec![] };
            assert!(families.insert(name.to_owned(), new).is_none(), "a second TYPE: {line}");
        } else {
            assert!(!line.is_empty() && !line.starts_with('#'), "odd line: {line:?}");
            let (name, labels, value) = sample(line);
            let family = families.get_mut(&now).unwrap_or_else(|| panic!("no TYPE: {line}"));
            let of = match family.kind.as_str() {
                "histogram" => ["_bucket", "_sum", "_count"]
                    .iter()
                    .any(|ending| name == format!("{now}{ending}")),
                _ => name == now,
            };
            assert!(of, "{line} does not belong to {now}");
            family.samples.push((name, labels, value));
        }
    }
    for (name, family) in &families {
        check(name, family);
    }
    families
}

fn name_is_plain(name: &str, colon: bool) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || colon && c == ':';
    name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
}

fn sample(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("no value: {line}"));
    let name = &line[..end];
    assert!(name_is_plain(name, true), "name: {line}");
    let mut labels = Labels::new();
    let mut rest = &line[end..];
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            let (key, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("label: {line}"));
            assert!(name_is_plain(key, false) && !key.starts_with("__"), "label {key}: {line}");
            let (value, after) = quoted(after, line);
            assert!(labels.insert(key.to_owned(), value).is_none(), "label {key} twice: {line}");
            rest = after.strip_prefix(',').unwrap_or(after);
            assert!(rest.len() < after.len() || after.starts_with('}'), "no comma: {line}");
        }
    }
    let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("no blank: {line}"));
    let value = match value {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        number => number.parse().unwrap_or_else(|_| panic!("value: {line}")),
    };
    (name.to_owned(), labels, value)
}

/// A label's value and what follows its quotation mark.
fn quoted<'a>(text: &'a str, line: &str) -> (String, &'a str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '"' => return (value, &text[i + 1..]),
            '\\' => value.push(match chars.next() {
                Some((_, 'n')) => '\n',
                Some((_, c @ ('\\' | '"'))) => c,
                _ => panic!("escape: {line}"),
            }),
            c => value.push(c),
        }
    }
    panic!("no end of a label: {line}")
}

fn check(name: &str, family: &Family) {
    assert!(name.starts_with("crater_"), "{name}");
    for unit in ["_ms", "_milliseconds", "_mib", "_milli", "_minutes"] {
        assert!(!name.contains(unit), "{name} is not in base units");
    }
    let mut seen = BTreeSet::new();
    for (sample, labels, value) in &family.samples {
        assert!(seen.insert((sample.clone(), labels.clone())), "{sample}{labels:?} twice");
        if family.kind != "gauge" {
            assert!(*value >= 0.0, "{sample}{labels:?} is {value}");
        }
    }
    match family.kind.as_str() {
        "counter" => assert!(name.ends_with("_total"), "{name}"),
        "histogram" => histogram(name, family),
        _ => assert!(!name.ends_with("_total"), "{name}"),
    }
}

fn histogram(name: &str, family: &Family) {
    let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    let mut counts: BTreeMap<Labels, f64> = BTreeMap::new();
    for (sample, labels, value) in &family.samples {
        let mut labels = labels.clone();
        if sample.ends_with("_bucket") {
            let le = labels.remove("le").unwrap_or_else(|| panic!("{name} has no le"));
            let le = if le == "+Inf" { f64::INFINITY } else { le.parse().unwrap() };
            series.entry(labels).or_default().push((le, *value));
        } else if sample.ends_with("_count") {
            counts.insert(labels, *value);
        }
    }
    for (labels, buckets) in &series {
        let rising = buckets.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1);
        assert!(rising, "{name}{labels:?}: {buckets:?}");
        let (le, all) = buckets.last().unwrap();
        assert!(le.is_infinite() && counts[labels] == *all, "{name}{labels:?}");
    }
    assert_eq!(series.len(), counts.len(), "{name}");
}

impl Family {
    /// The sum of the samples of a name that have all of these labels.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let fits = |has: &Labels| {
            labels.iter().all(|(key, value)| has.get(*key).is_some_and(|has| has == value))
        };
        self.samples.iter().filter(|(n, has, _)| n == name && fits(has)).map(|(_, _, v)| v).sum()
    }

    /// The upper ends of a histogram's buckets.
    pub fn buckets(&self) -> Vec<f64> {
        let all = self.samples.iter().filter_map(|(_, labels, _)| labels.get("le"));
        let all: BTreeSet<String> = all.cloned().collect();
        let mut ends: Vec<f64> = all.iter().filter_map(|le| le.parse().ok()).collect();
        ends.retain(|end| end.is_finite());
        ends.sort_by(f64::total_cmp);
        ends
    }
}
