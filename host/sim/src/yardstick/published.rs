//! The published figures: mean unallocated GPU at 100 % arrived over the
//! authors' ten runs, in percent of the cluster.
//!
//! Aggregated from the expected results in the authors' simulator repository
//! (hkust-adsl/kubernetes-scheduler-simulator, Apache-2.0).

/// The policies, as ours are named, in the order of the columns.
pub const POLICIES: [&str; 6] = ["random", "dotprod", "clustering", "packing", "bestfit", "fgd"];

/// Trace and figures.
#[rustfmt::skip]
const FIGURES: &[(&str, [f64; 6])] = &[
    ("cpu050", [10.978, 6.966, 6.479, 6.538, 6.440, 5.004]),
    ("cpu100", [12.565, 8.269, 7.585, 7.505, 6.737, 4.792]),
    ("cpu250", [20.002, 16.430, 12.249, 11.951, 8.789, 6.804]),
    ("default", [13.697, 9.378, 8.350, 8.221, 7.138, 4.773]),
    ("gpushare100", [21.100, 18.021, 17.775, 17.866, 15.384, 13.360]),
    ("gpushare40", [15.136, 10.696, 10.243, 10.226, 8.557, 6.039]),
    ("gpushare80", [19.378, 15.864, 15.502, 15.353, 13.343, 10.917]),
    ("gpuspec10", [13.743, 9.826, 8.044, 7.763, 6.901, 5.337]),
    ("gpuspec25", [14.582, 14.562, 13.594, 13.227, 14.331, 6.093]),
    ("gpuspec33", [16.134, 20.183, 18.910, 17.782, 19.605, 12.164]),
    ("multigpu20", [13.081, 8.153, 6.657, 6.500, 6.266, 4.472]),
    ("multigpu40", [14.625, 5.959, 4.654, 4.408, 4.901, 3.094]),
    ("multigpu50", [18.718, 5.272, 4.314, 3.936, 4.377, 2.906]),
];

/// The published mean of a policy on a trace.
pub fn published(trace: &str, policy: &str) -> Option<f64> {
    let column = POLICIES.iter().position(|p| *p == policy)?;
    FIGURES.iter().find(|(name, _)| *name == trace).map(|(_, figures)| figures[column])
}
