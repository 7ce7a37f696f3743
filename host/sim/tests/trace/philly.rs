//! Jobs of the Philly trace.

use crater_sim::trace::philly;
use expect_test::{Expect, expect};

fn check(lines: &str, expected: &Expect) {
    let text = format!("timestamp,duration,num_gpus,gpu_time,cluster\n{lines}");
    let show = |j: &philly::Job| {
        format!("{}: {} GPUs for {:?} in {}\n", j.submitted.secs(), j.gpus, j.duration, j.cluster)
    };
    let shown = match philly::jobs_from("philly.csv", text.as_bytes()) {
        Ok(jobs) => jobs.iter().map(show).collect(),
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&shown);
}

#[test]
fn jobs_come_in_the_order_of_submission() {
    check(
        "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n2017-10-09 06:13:03,2951.5,2,5903,6214e9\n",
        &expect![[r#"
            1507529583: 2 GPUs for 2951.5s in 6214e9
            1507532515: 1 GPUs for 66s in 11cb48
        "#]],
    );
}

#[test]
fn what_is_no_job_is_refused_by_its_place() {
    check(
        "2017-02-30 07:01:55,66.0,1,66.0,a\n",
        &expect![[r#"
        philly.csv:2: timestamp: "2017-02-30 07:01:55" is refused: expected a moment since 1970, such as 2017-10-09 07:01:55
    "#]],
    );
    check(
        "1969-12-31 23:59:59,66.0,1,66.0,a\n",
        &expect![[r#"
        philly.csv:2: timestamp: "1969-12-31 23:59:59" is refused: expected a moment since 1970, such as 2017-10-09 07:01:55
    "#]],
    );
    check(
        "2017-10-09 07:01:55,1e5,1,66.0,a\n",
        &expect![[r#"
        philly.csv:2: duration: "1e5" is refused: expected seconds, such as 66.0
    "#]],
    );
    check(
        "2017-10-09 07:01:55,5m,1,66.0,a\n",
        &expect![[r#"
        philly.csv:2: duration: "5m" is refused: expected seconds, such as 66.0
    "#]],
    );
    check(
        "2017-10-09 07:01:55,66.0,0,66.0,a\n",
        &expect![[r#"
        philly.csv:2: num_gpus: "0" is refused: expected a whole number from 1 to 100000
    "#]],
    );
    check(
        "2017-10-09 07:01:55,66.0,2,66.0,a\n",
        &expect![[r#"
        philly.csv:2: gpu_time: "66.0" is refused: expected duration times num_gpus
    "#]],
    );
}

#[test]
fn virtual_clusters_have_their_published_sizes() {
    assert_eq!(philly::CLUSTERS.iter().map(|(_, nodes)| nodes).sum::<u64>(), 352);
    assert_eq!(philly::cluster_nodes("ed69ec"), Some(8));
    assert_eq!(philly::cluster_nodes("23dbec"), None);
}
