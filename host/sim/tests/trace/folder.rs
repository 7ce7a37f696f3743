//! Folders of traces.

use crater_sim::trace::Traces;
use std::fs;

const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-0,1000,1024,1,500\n";
const NODES: &str = "sn,cpu_milli,memory_mib,gpu,model\nn-0,8000,65536,2,T4\n";

#[test]
fn the_files_or_folders_with_them_may_be_named() {
    let root = tempfile::tempdir().unwrap();
    let openb = root.path().join("openb");
    fs::create_dir(&openb).unwrap();
    for name in ["tiny", "default"] {
        fs::write(openb.join(format!("openb_pod_list_{name}.csv")), PODS).unwrap();
    }
    fs::write(openb.join("openb_node_list_gpu_node.csv"), NODES).unwrap();
    for path in [root.path(), &openb] {
        let traces = Traces::at(path).unwrap();
        assert_eq!(traces.openb_names().unwrap(), ["default", "tiny"]);
        let trace = traces.openb("tiny").unwrap();
        assert_eq!((trace.name.as_str(), trace.gpus(), trace.pods.len()), ("tiny", 2, 1));
    }
    let error = Traces::at(root.path()).unwrap().openb("../default").unwrap_err();
    let expected = "trace \"../default\" is unknown: expected one of default, tiny";
    assert_eq!(error.to_string(), expected);
    let error = Traces::at(root.path()).unwrap().philly().unwrap_err();
    assert!(error.to_string().ends_with("holds no philly.csv, nor does its folder philly/"));
}

#[test]
fn a_folder_without_traces_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let error = Traces::at(root.path()).unwrap_err().to_string();
    assert!(
        error.ends_with("holds no openb_pod_list_*.csv, nor does its folder openb/"),
        "{error}"
    );
    let error = Traces::at(&root.path().join("none")).unwrap_err();
    assert!(error.to_string().ends_with("none: cannot be read"), "{error}");
}
