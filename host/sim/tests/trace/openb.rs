//! Nodes and pods of the openb traces.

use crater_model::{GpuAsk, Mib, MilliCards, MilliCores, NodeSpec, Share};
use crater_sim::trace::{Class, Pod, Qos, TraceError, openb, workload_mix};
use expect_test::{Expect, expect};

const POD_HEADER: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,\
                          creation_time,deletion_time,scheduled_time";

fn check<T>(read: Result<Vec<T>, TraceError>, show: impl Fn(&T) -> String, expected: &Expect) {
    let shown = match read {
        Ok(all) => all.iter().map(|one| show(one) + "\n").collect(),
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&shown);
}

fn check_nodes(text: &str, expected: &Expect) {
    let show = |n: &NodeSpec| {
        let cards: Vec<_> = n.cards.iter().map(|c| format!("{} {}", c.model, c.memory)).collect();
        format!("{}: {} cores, {}, {cards:?}", n.name, n.cpu, n.memory)
    };
    check(openb::nodes_from("nodes.csv", text.as_bytes()), show, expected);
}

fn check_pods(text: &str, expected: &Expect) {
    let show = |p: &Pod| {
        format!(
            "{}: {} cores, {}, {} × {} of {:?}, {:?} to {:?}, {:?}",
            p.name, p.cpu, p.memory, p.cards, p.card_milli, p.models, p.arrive, p.leave, p.qos
        )
    };
    check(openb::pods_from("pods.csv", text.as_bytes()), show, expected);
}

/// One line below the header of all eleven columns.
fn check_pod(line: &str, expected: &Expect) {
    check_pods(&format!("{POD_HEADER}\n{line}\n"), expected);
}

#[test]
fn nodes_get_the_memory_of_their_cards_model() {
    check_nodes(
        "sn,cpu_milli,memory_mib,gpu,model\n\
         openb-node-0000,32000,262144,0,\n\
         openb-node-0001,64000,262144,2,P100\n\
         openb-node-0002,128000,1048576,1,A10\n",
        &expect![[r#"
            openb-node-0000: 32 cores, 256Gi, []
            openb-node-0001: 64 cores, 256Gi, ["P100 16Gi", "P100 16Gi"]
            openb-node-0002: 128 cores, 1024Gi, ["A10 24Gi"]
        "#]],
    );
}

#[test]
fn columns_may_stand_in_any_order() {
    check_nodes(
        "model,gpu,sn,memory_mib,cpu_milli\r\nT4,1,a,2048,1000\r\n",
        &expect![[r#"
            a: 1 cores, 2Gi, ["T4 16Gi"]
        "#]],
    );
}

#[test]
fn nodes_that_contradict_themselves_are_refused() {
    let node = |line: &str, expected: &Expect| {
        check_nodes(&format!("sn,cpu_milli,memory_mib,gpu,model\n{line}\n"), expected);
    };
    node(
        "a,1000,2048,1,H9000",
        &expect![[r#"
        nodes.csv:2: model: "H9000" is refused: expected one of A10, G2, G3, P100, T4, V100M16, V100M32
    "#]],
    );
    node(
        "a,1000,2048,0,T4",
        &expect![[r#"
        nodes.csv:2: model: "T4" is refused: expected nothing where gpu is 0
    "#]],
    );
    node(
        "a,1000,2048,256,T4",
        &expect![[r#"
        nodes.csv:2: gpu: "256" is refused: expected a whole number from 0 to 255
    "#]],
    );
    node(
        "a,1000,2048,0,\na,1000,2048,0,",
        &expect![[r#"
        nodes.csv:3: sn: "a" is refused: expected a name that no line before it has
    "#]],
    );
    node(
        "A b,1000,2048,0,",
        &expect![[r#"
        nodes.csv:2: sn: "A b" is refused: expected 1 to 63 lower-case letters, digits, '-' or '.', beginning and ending with a letter or digit
    "#]],
    );
}

#[test]
fn pods_of_all_columns_and_of_the_first_five() {
    check_pods(
        &format!(
            "{POD_HEADER}\n\
             p-0,12000,16384,1,1000,,LS,Running,0,12537496,0\n\
             p-1,6000,12288,1,460,V100M32|T4|V100M32,BE,Pending,5,5,\n\
             p-2,8000,30517,0,0,,Burstable,Failed,5,9,6\n"
        ),
        &expect![[r#"
            p-0: 12 cores, 16Gi, 1 × 1 of [], Some(0) to Some(12537496), Some(LatencySensitive)
            p-1: 6 cores, 12Gi, 1 × 0.46 of ["T4", "V100M32"], Some(5) to Some(5), Some(BestEffort)
            p-2: 8 cores, 30517Mi, 0 × 0 of [], Some(5) to Some(9), Some(Burstable)
        "#]],
    );
    check_pods(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-0,88000,327680,8,1000\n",
        &expect![[r#"
            p-0: 88 cores, 320Gi, 8 × 1 of [], None to None, None
        "#]],
    );
}

#[test]
fn a_value_out_of_range_is_refused_by_its_place() {
    check_pod(
        "p,1000,2048,1,5x,,LS,Running,0,1,0",
        &expect![[r#"
        pods.csv:2: gpu_milli: "5x" is refused: expected a whole number from 0 to 1000
    "#]],
    );
    check_pod(
        "p,1000,2048,9,1000,,LS,Running,0,1,0",
        &expect![[r#"
        pods.csv:2: num_gpu: "9" is refused: expected a whole number from 0 to 8
    "#]],
    );
    check_pod(
        "p,-1,2048,0,0,,LS,Running,0,1,0",
        &expect![[r#"
        pods.csv:2: cpu_milli: "-1" is refused: expected a whole number from 0 to 2147483647
    "#]],
    );
    check_pod(
        "p,1000,,0,0,,LS,Running,0,1,0",
        &expect![[r#"
        pods.csv:2: memory_mib: "" is refused: expected a whole number from 0 to 2147483647
    "#]],
    );
    check_pod(
        "p,1000,2048,2,500,,LS,Running,0,1,0",
        &expect![[r#"
        pods.csv:2: gpu_milli: "500" is refused: expected 1000 where num_gpu is above 1
    "#]],
    );
    check_pod(
        "p,1000,2048,1,0,,LS,Running,0,1,0",
        &expect![[r#"
        pods.csv:2: gpu_milli: "0" is refused: expected 1 to 1000 where num_gpu is 1
    "#]],
    );
    check_pod(
        "p,1000,2048,1,1000,T4|,LS,Running,0,1,0",
        &expect![[r#"
        pods.csv:2: gpu_spec: "T4|" is refused: expected models separated by '|', each one of A10, G2, G3, P100, T4, V100M16, V100M32
    "#]],
    );
    check_pod(
        "p,1000,2048,1,1000,,ls,Running,0,1,0",
        &expect![[r#"
        pods.csv:2: qos: "ls" is refused: expected LS, BE, Burstable or Guaranteed
    "#]],
    );
    check_pod(
        "p,1000,2048,1,1000,,LS,,0,1,0",
        &expect![[r#"
        pods.csv:2: pod_phase: "" is refused: expected Pending, Running, Succeeded, Failed or Unknown
    "#]],
    );
    check_pod(
        "p,1000,2048,1,1000,,LS,Running,7,6,7",
        &expect![[r#"
        pods.csv:2: deletion_time: "6" is refused: expected 7 (creation_time) or later
    "#]],
    );
}

#[test]
fn a_file_of_another_shape_is_refused() {
    check_pods(
        "",
        &expect![[r#"
        pods.csv:1: column name is missing: expected name, cpu_milli, memory_mib, num_gpu, gpu_milli
    "#]],
    );
    check_pods(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,color\n",
        &expect![[r#"
        pods.csv:1: column "color" is refused: expected name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec, qos, pod_phase, creation_time, deletion_time, scheduled_time
    "#]],
    );
    check_pods(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos\n",
        &expect![[r#"
        pods.csv:1: column gpu_spec is missing: expected name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec, qos, pod_phase, creation_time, deletion_time, scheduled_time
    "#]],
    );
    check_pods(
        "name,name,cpu_milli,memory_mib,num_gpu,gpu_milli\n",
        &expect![[r#"
        pods.csv:1: column "name" is refused: it is there twice
    "#]],
    );
    check_pods(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,0,0\nb,1,1,0\n",
        &expect![[r#"
            pods.csv:3: the line has 4 values, its header 5
        "#]],
    );
    let bytes = b"name,cpu_milli,memory_mib,num_gpu,gpu_milli\na\xff,1,1,0,0\n".as_slice();
    let error = openb::pods_from("pods.csv", bytes).unwrap_err();
    assert_eq!(error.to_string(), "pods.csv:2: the line is not UTF-8");
}

#[test]
fn a_pod_asks_for_what_its_class_says() {
    let text = format!(
        "{POD_HEADER}\n\
         a,1000,2048,0,0,,LS,Running,0,1,0\n\
         b,1000,2048,1,470,T4|P100,LS,Running,0,1,0\n\
         c,1000,0,1,1000,,LS,Running,0,1,0\n\
         d,1000,2048,8,1000,,LS,Running,0,1,0\n"
    );
    let pods = openb::pods_from("pods.csv", text.as_bytes()).unwrap();
    let part = Share::Part { milli: MilliCards(470), memory: None };
    let expected = [
        (Class::CpuOnly, None),
        (Class::Fraction, Some(GpuAsk { cards: 1, share: part })),
        (Class::OneCard, Some(GpuAsk { cards: 1, share: Share::Whole })),
        (Class::SeveralCards, Some(GpuAsk { cards: 8, share: Share::Whole })),
    ];
    for (pod, (class, gpu)) in pods.iter().zip(expected) {
        let request = pod.request();
        assert_eq!((pod.class(), &request.gpu), (class, &gpu), "{}", pod.name);
        request.check().unwrap();
    }
    assert_eq!(pods[1].request().models, ["P100".into(), "T4".into()]);
    assert_eq!(pods[2].request().memory, Mib(1), "a card comes with memory");
    assert_eq!(pods[0].qos, Some(Qos::LatencySensitive));
}

#[test]
fn the_mix_is_the_most_frequent_shape_first() {
    let pod = |name: &str, cpu: u64, memory: u64, spec: &str| {
        format!("{name},{cpu},{memory},1,500,{spec},LS,Running,0,1,0\n")
    };
    let text = format!(
        "{POD_HEADER}\n{}{}{}{}{}",
        pod("a", 2000, 10, ""),
        pod("b", 1000, 30, ""),
        pod("c", 1000, 20, ""),
        pod("d", 1000, 20, ""),
        pod("e", 2000, 10, "T4"),
    );
    let mix = workload_mix(&openb::pods_from("pods.csv", text.as_bytes()).unwrap());
    let shown: Vec<_> =
        mix.iter().map(|s| (s.count, s.cpu, s.memory, s.models.len(), s.cards, s.milli)).collect();
    let half = MilliCards(500);
    assert_eq!(
        shown,
        [
            (3, MilliCores(1000), Mib(20), 0, 1, half),
            (1, MilliCores(2000), Mib(10), 1, 1, half),
            (1, MilliCores(2000), Mib(10), 0, 1, half),
        ]
    );
}
