//! Cutting a failing world down: fewer lines, then fewer words on each.

/// The fewest lines found that still fail. Tries to leave out ever smaller
/// runs of lines, then single words, until nothing more can go.
pub fn shrink(lines: &[String], fails: &dyn Fn(&[String]) -> bool) -> Vec<String> {
    let mut best = lines.to_vec();
    loop {
        let before = best.clone();
        best = fewer(best, fails);
        best = shorter(best, fails);
        if best == before {
            return best;
        }
    }
}

fn fewer(mut best: Vec<String>, fails: &dyn Fn(&[String]) -> bool) -> Vec<String> {
    let mut run = best.len().div_ceil(2);
    loop {
        let mut at = 0;
        while at < best.len() {
            let end = (at + run).min(best.len());
            let mut less = best.clone();
            less.drain(at..end);
            if fails(&less) {
                best = less;
            } else {
                at = end;
            }
        }
        if run <= 1 {
            return best;
        }
        run = run.div_ceil(2);
    }
}

fn shorter(mut best: Vec<String>, fails: &dyn Fn(&[String]) -> bool) -> Vec<String> {
    for at in 0..best.len() {
        let mut word = 1;
        while let Some(shorter) = without(&best[at], word) {
            let mut less = best.clone();
            less[at] = shorter;
            if fails(&less) {
                best = less;
            } else {
                word += 1;
            }
        }
    }
    best
}

/// The line without its nth word, `None` if it has no such word. Words of a
/// quoted configuration count one by one.
fn without(line: &str, nth: usize) -> Option<String> {
    let mut words: Vec<&str> = line.split(' ').collect();
    if nth >= words.len() {
        return None;
    }
    let gone = words.remove(nth);
    let quotes = gone.matches('\'').count();
    if quotes % 2 == 1 && !words.is_empty() {
        // It opened or closed a quote: its neighbour must.
        let opened = gone.contains("='");
        let key = gone.split_once('\'').map_or("", |(key, _)| key);
        if opened && nth < words.len() {
            let joined = format!("{key}'{}", words[nth]);
            let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            words[nth] = joined;
            return Some(words.join(" "));
        }
        return Some(format!("{}'", words.join(" ")));
    }
    Some(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_left() {
        let lines: Vec<String> = (0..50).map(|i| format!("line {i} a='b c d' e")).collect();
        let fails = |lines: &[String]| {
            let has = |text: &str| lines.iter().any(|l| l.contains(text));
            has("line 7 ") && has("line 31 ") && has("c")
        };
        let cut = shrink(&lines, &fails);
        assert_eq!(cut.len(), 2, "{cut:?}");
        assert!(cut.iter().all(|line| line.len() < 20), "{cut:?}");
    }
}
