//! A mean over seeds and how far it may be off.

/// Factors of Student's t distribution for a two-sided 95 % interval, by
/// degrees of freedom from 1.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// A mean with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % interval about it, by Student's t; none from
    /// a single value.
    pub half: Option<f64>,
}

/// The mean of independent values; `None` without any.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let freedom = values.len().checked_sub(1)?;
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let half = (freedom > 0).then(|| {
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        // Beyond the table the factor falls slowly to that of the normal
        // distribution; this is within 0.1 % of it.
        let beyond = || 1.96 * (1.0 + 1.21 / freedom as f64);
        let factor = STUDENT.get(freedom - 1).copied().unwrap_or_else(beyond);
        factor * (squares / freedom as f64 / n).sqrt()
    });
    Some(Estimate { mean, half })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_students() {
        assert_eq!(estimate(&[]), None);
        assert_eq!(estimate(&[3.0]), Some(Estimate { mean: 3.0, half: None }));
        let three = estimate(&[1.0, 2.0, 3.0]).unwrap();
        // s = 1, n = 3, t = 4.303.
        assert!((three.half.unwrap() - 4.303 / 3f64.sqrt()).abs() < 1e-9, "{three:?}");
        let same = estimate(&[5.0; 4]).unwrap();
        assert_eq!((same.mean, same.half), (5.0, Some(0.0)));
        // t is 2.021 at 40 degrees of freedom and 1.980 at 120.
        for (freedom, factor) in [(40_usize, 2.021), (120, 1.980)] {
            let values: Vec<f64> = (0..=freedom).map(|i| (i % 2) as f64).collect();
            let found = estimate(&values).unwrap();
            let n = values.len() as f64;
            let s = values.iter().map(|v| (v - found.mean).powi(2)).sum::<f64>() / (n - 1.0);
            let t = found.half.unwrap() / (s / n).sqrt();
            assert!((t - factor).abs() < 0.003, "{freedom}: {t}");
        }
    }
}
