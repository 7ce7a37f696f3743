//! `crater simulate steady` as people meet it.
#![allow(missing_docs)]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const NODES: &str =
    "sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\nn-1,96000,393216,8,G2\n";
const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
    p-0,4000,8192,1,500,,LS,Running,0,100,0\n\
    p-1,8000,16384,1,1000,G2|P100,BE,Running,5,50,5\n\
    p-2,8000,16384,4,1000,,BE,Running,5,65,5\n\
    p-3,8000,16384,0,0,,BE,Running,5,65,5\n";
const SHORT: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-2,8000,16384,4,1000\np-9,8000,16384,2,1000\np-0,4000,8192,1,500\n";

/// A folder with a trace `default` and one without life times.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("openb_node_list_gpu_node.csv", NODES),
        ("openb_pod_list_default.csv", PODS),
        ("openb_pod_list_short.csv", SHORT),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn steady(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crater"))
        .args(["simulate", "steady"])
        .args(args)
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env_remove("CRATER_TRACES")
        .output()
        .unwrap()
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn runs(text: &str) -> Vec<Value> {
    let mut runs: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    for run in &mut runs {
        assert!(run["wall_seconds"].take().as_f64().unwrap() >= 0.0);
    }
    runs
}

const SMALL: [&str; 6] = ["--data", ".", "--arrivals", "400", "--seeds", "1-2"];

#[test]
fn each_run_is_a_line_and_policies_see_the_same_arrivals() {
    let folder = folder();
    let args = ["--trace", "default,short", "--load", "50,90", "--format", "json"];
    let policies = ["--policy", "bestfit", "--policy", "fgd"];
    let args = [&args[..], &policies].concat();
    let args = [&SMALL[..], &args].concat();
    let text = printed(&steady(folder.path(), &args));
    let all = runs(&text);
    assert_eq!(all.len(), 2 * 2 * 2 * 2, "traces, loads, policies, seeds");
    let more = steady(folder.path(), &[&args[..], &["--jobs", "3"]].concat());
    assert_eq!(runs(&printed(&more)), all, "the same on any number of threads");

    let stream = |run: &Value| {
        let waits = run["waits"].as_object().unwrap();
        let pods: Vec<_> =
            waits.iter().map(|(class, w)| (class.clone(), w["pods"].clone())).collect();
        (pods, run["seconds"].clone(), run["before"].clone())
    };
    let of = |policy: &str| {
        let here = all.iter().filter(|r| r["policy"] == policy);
        here.map(|r| (r["trace"].clone(), r["load"].clone(), r["seed"].clone(), stream(r)))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("bestfit").len(), 8);
    assert_eq!(of("bestfit"), of("fgd"));
    for run in &all {
        assert_eq!(run["lives"], "default");
        assert_eq!((&run["waits"]["all"]["pods"], &run["faults"]), (&400.into(), &0.into()));
    }
}

#[test]
fn earlier_runs_are_shown_and_not_made_again() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let two = ["--load", "90", "--policy", "fgd", "--policy", "fgd={\"cover\":90}"];
    let args = [&SMALL[..], &two, &["--format", "json"]].concat();
    let text = printed(&steady(folder.path(), &args));
    assert_eq!(runs(&text).len(), 4);
    std::fs::write(at("runs.jsonl"), &text).unwrap();

    let again = steady(folder.path(), &[&args[..], &["--from", "runs.jsonl"]].concat());
    let again = printed(&again);
    assert!(again == text, "to the last digit of the time they took: {again}");

    // Without traces nothing is run.
    let shown = ["--from", "runs.jsonl", "--html", "page.html", "--markdown", "page.md"];
    let shown = printed(&steady(folder.path(), &shown));
    let markdown = std::fs::read_to_string(at("page.md")).unwrap();
    for text in [&shown, &markdown] {
        assert!(text.contains("fgd={\"cover\":90}") && text.contains("less fgd"), "{text}");
    }
    let page = std::fs::read_to_string(at("page.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("src=\"http"), "self-contained");
}

#[test]
fn bad_input_is_named_in_one_line() {
    let folder = folder();
    std::fs::write(folder.path().join("no.jsonl"), "\n{\"trace\":1}\n").unwrap();
    for (args, words) in [
        (&["--policy", "fgd=oops"][..], ["--policy", "JSON"]),
        (&["--policy", "fgd=[]"], ["--policy", "object"]),
        (&["--policy", "fgd={\"cover\":0}"], ["fgd", "cover"]),
        (&["--policy", "nothing"], ["nothing", "bestfit"]),
        (&["--seeds", "2-1"], ["--seeds", "2-1"]),
        (&["--trace", "other"], ["other", "short"]),
        (&["--from", "no.jsonl"], ["no.jsonl:2", "not a run"]),
        (&["--from", "nowhere.jsonl"], ["nowhere.jsonl", ""]),
    ] {
        let output = steady(folder.path(), &[&["--data", "."], args].concat());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{args:?}: {error}");
        assert!(words.iter().all(|w| error.contains(w)), "{args:?}: {words:?} in {error}");
    }
    std::fs::remove_file(folder.path().join("openb_pod_list_default.csv")).unwrap();
    let output = steady(folder.path(), &["--data", ".", "--trace", "short"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("short has no life times"), "{error}");
}
