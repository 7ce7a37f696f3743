//! No input makes a reader panic, and what is refused is refused in one line.

use crater_sim::trace::{TraceError, openb, philly, workload_mix, yardstick_arrivals};
use proptest::prelude::*;

const HEADERS: [&str; 4] = [
    "sn,cpu_milli,memory_mib,gpu,model",
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli",
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,\
     deletion_time,scheduled_time",
    "timestamp,duration,num_gpus,gpu_time,cluster",
];

fn read_all(bytes: &[u8]) {
    let one_line = |error: TraceError| {
        let text = error.to_string();
        assert!(text.starts_with("f.csv:") && !text.contains('\n'), "{text:?}");
    };
    let _ = openb::nodes_from("f.csv", bytes).map_err(one_line);
    let _ = philly::jobs_from("f.csv", bytes).map_err(one_line);
    if let Ok(pods) = openb::pods_from("f.csv", bytes).map_err(one_line) {
        for pod in &pods {
            pod.request().check().unwrap_or_else(|e| assert_eq!(e.field, "cpu", "{pod:?}"));
        }
        assert!(workload_mix(&pods).len() <= pods.len());
        assert!(yardstick_arrivals(&pods, 3, 1).len() >= pods.len().min(1));
    }
}

/// Values that are nearly right, so that lines get past their first column.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just("1".to_owned()),
        2 => Just("1000".to_owned()),
        2 => Just(String::new()),
        2 => "[0-9]{1,25}",
        1 => "[a-z0-9.-]{1,8}",
        1 => "(T4|G2|A10|V100M32|\\|){1,4}",
        1 => "(LS|BE|Running|Pending)",
        1 => "20[0-9]{2}-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-6][0-9]:[0-6][0-9]",
        1 => "\\PC{0,12}",
        1 => "[\"\n\r,é]{0,4}",
    ]
}

proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read_all(&bytes);
    }

    #[test]
    fn any_text_below_a_known_header(header in 0..HEADERS.len(), text in "\\PC{0,80}") {
        read_all(format!("{}\n{text}", HEADERS[header]).as_bytes());
    }

    #[test]
    fn lines_of_nearly_right_values(
        header in 0..HEADERS.len(),
        values in proptest::collection::vec(value(), 22),
    ) {
        let width = HEADERS[header].split(',').count();
        let lines: Vec<_> = values.chunks_exact(width).map(|line| line.join(",")).collect();
        read_all(format!("{}\n{}\n", HEADERS[header], lines.join("\n")).as_bytes());
    }
}
