//! A small curve of measurements for a terminal.

use std::fmt::Write as _;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Most columns of a curve.
pub const WIDTH: usize = 60;
/// Lines of a curve.
const HEIGHT: usize = 6;

/// Values put into so many columns of equal time, each the mean of what falls
/// into it; none where nothing does. Times are of any unit and ascending.
pub fn columns(points: &[(u64, u64)], width: usize) -> Vec<Option<u64>> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return vec![] };
    let span = (last.0 - first.0).max(1);
    let width = width.min(points.len()).max(1);
    let mut sums = vec![(0_u64, 0_u64); width];
    for (at, value) in points {
        let column = ((at - first.0) * (width as u64 - 1)).div_ceil(span);
        let sum = &mut sums[column as usize];
        *sum = (sum.0.saturating_add(*value), sum.1 + 1);
    }
    sums.into_iter().map(|(sum, n)| sum.checked_div(n)).collect()
}

/// One line.
pub fn spark(columns: &[Option<u64>], top: u64) -> String {
    let bar = |value: u64| BARS[(value.min(top) * 7).checked_div(top.max(1)).unwrap_or(0) as usize];
    columns.iter().map(|column| column.map_or(' ', bar)).collect()
}

/// Several lines, with the amount of the highest and the lowest beside them.
pub fn curve(columns: &[Option<u64>], top: u64, spell: &dyn Fn(u64) -> String) -> String {
    let steps = (HEIGHT * BARS.len()) as u64;
    let labels = [spell(top), spell(0)];
    let wide = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for line in (0..HEIGHT).rev() {
        let label = match line {
            0 => &labels[1],
            _ if line + 1 == HEIGHT => &labels[0],
            _ => "",
        };
        let _ = write!(text, "{label:>wide$} │");
        for column in columns {
            let height = column.map_or(0, |value| (value.min(top) * steps).div_ceil(top.max(1)));
            let here = height.saturating_sub((line * BARS.len()) as u64).min(BARS.len() as u64);
            text.push(if here == 0 { ' ' } else { BARS[here as usize - 1] });
        }
        while text.ends_with(' ') {
            text.pop();
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_means_of_equal_times_and_gaps_stay_empty() {
        let points = [(0, 10), (10, 20), (20, 30), (100, 90)];
        assert_eq!(columns(&points, 60), [Some(10), Some(25), None, Some(90)]);
        assert_eq!(columns(&points[..1], 60), [Some(10)]);
        assert_eq!(columns(&[], 60), []);
        assert_eq!(columns(&points, 2), [Some(10), Some(46)]);
    }

    #[test]
    fn curves_reach_from_nothing_to_the_top() {
        let values = [Some(0), Some(24), None, Some(48)];
        assert_eq!(spark(&values, 48), "▁▄ █");
        let text = curve(&values, 48, &|n| n.to_string());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 6);
        assert_eq!((lines[0], lines[3], lines[5]), ("48 │   █", "   │ █ █", " 0 │ █ █"));
        assert_eq!(spark(&[Some(0)], 0), "▁");
    }
}
