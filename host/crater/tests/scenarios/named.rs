//! What pages and tables name is there: files, tests, scenarios.

use super::{ELSEWHERE, PLAYED, play};
use std::path::{Path, PathBuf};

/// The numbers of the reported cases.
const CASES: [u32; 48] = [
    2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 15, 16, 17, 18, 19, 22, 23, 24, 25, 26, 27, 28, 29, 30, 32,
    33, 34, 35, 37, 38, 40, 41, 42, 43, 44, 45, 47, 48, 50, 52, 53, 55, 56, 57, 59, 60, 61, 63,
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether there is a test in a file, written `FILE::TEST`.
pub fn exists(test: &str) -> bool {
    let Some((file, function)) = test.split_once("::") else { return false };
    if file == "scenarios" {
        return PLAYED.iter().any(|(name, _)| *name == function);
    }
    let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
    text.contains(&format!("fn {function}("))
}

#[test]
fn every_case_names_where_it_is_tried() {
    let page = std::fs::read_to_string(root().join("docs/cases.md")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| C"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let numbers: Vec<String> = CASES.iter().map(|number| format!("C{number:02}")).collect();
    assert_eq!(rows.iter().map(|row| row[0].to_owned()).collect::<Vec<_>>(), numbers);
    let mut wrong = vec![];
    for row in &rows {
        let [case, _, engine, server, later] = row[..] else { panic!("{row:?}") };
        if engine.is_empty() && server.is_empty() && later.is_empty() {
            wrong.push(format!("{case} is tried nowhere"));
        }
        // What stands between backquotes is a name.
        for cell in [engine, server, later] {
            for name in cell.split('`').skip(1).step_by(2) {
                let there = match name.strip_suffix(".scenario") {
                    Some(scenario) => play::file(scenario).is_file(),
                    None => exists(name),
                };
                if !there {
                    wrong.push(format!("{case}: there is no {name}"));
                }
            }
        }
        // A scenario of the engine's is played on a server, or it is said why not.
        for name in engine.split('`').filter_map(|name| name.strip_suffix(".scenario")) {
            let played = PLAYED.iter().find(|(_, scenario)| *scenario == name);
            let told =
                played.is_some_and(|(test, _)| server.contains(&format!("`scenarios::{test}`")));
            if !told && !ELSEWHERE.iter().any(|(scenario, ..)| *scenario == name) {
                wrong.push(format!("{case}: where is {name} played?"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
