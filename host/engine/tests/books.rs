//! The books under everything that happens to jobs and machines.
#![allow(missing_docs)]

mod common;

use common::{Bench, job, node, request};
use crater_model::mig::Geometry;
use crater_model::{
    CardSpec, ClaimState, GpuAsk, JobSpec, JobState, Mib, MigMode, Need, NodeSpec, NodeUid, Request,
};
use std::sync::Arc;

impl Bench {
    fn change(&mut self, spec: NodeSpec) {
        self.ledger.change_node(self.now, NodeUid(0), spec).unwrap();
        self.ledger.state().audit().unwrap();
    }
}

fn placed(bench: &mut Bench, spec: JobSpec) -> bool {
    let job = bench.submit(spec);
    bench.round();
    bench.ledger.state().job(job).unwrap().state == JobState::Starting
}

#[test]
fn one_card_is_on_one_numa_node_also_where_none_is_known() {
    let mut bench = Bench::new([node("n1", 8000, 65_536, 1, 81_920)]);
    let needs = Request { numa: Need::Required, ..request(500, 0, 1000, 1024) };
    assert!(placed(&mut bench, job("j1", needs.clone())));
    let two = Request { gpu: request(2000, 0, 1, 1).gpu, ..needs };
    let mut bench = Bench::new([node("n1", 8000, 65_536, 2, 81_920)]);
    assert!(!placed(&mut bench, job("j2", two)), "of two cards it must be known");
}

#[test]
fn a_job_runs_when_its_minimum_runs_or_has_run() {
    let mut bench = Bench::new([node("n1", 8000, 65_536, 0, 1)]);
    let gang = JobSpec { members: 3, min_members: 3, ..job("g", request(0, 0, 1000, 1024)) };
    let uid = bench.submit(gang);
    bench.round();
    let claims = bench.ledger.state().job(uid).unwrap().claims.clone();
    // The first is done before the last is up.
    bench.ledger.move_claim(bench.now, claims[0], ClaimState::Held).unwrap();
    bench.ledger.member_ended(bench.now, claims[0], true).unwrap();
    bench.ledger.move_claim(bench.now, claims[1], ClaimState::Held).unwrap();
    assert_eq!(bench.ledger.state().job(uid).unwrap().state, JobState::Starting);
    bench.ledger.move_claim(bench.now, claims[2], ClaimState::Held).unwrap();
    assert_eq!(bench.ledger.state().job(uid).unwrap().state, JobState::Running);
}

/// C19: whoever runs jobs may tell of one again that ended long ago.
#[test]
fn what_is_over_stays_over() {
    let mut bench = Bench::new([node("n1", 8000, 65_536, 4, 81_920)]);
    let over = bench.submit(job("j1", request(1000, 0, 1000, 1024)));
    assert!(bench.round().placed(over));
    let claim = bench.ledger.state().job(over).unwrap().claims[0];
    bench.ledger.move_claim(bench.now, claim, ClaimState::Held).unwrap();
    bench.ledger.member_ended(bench.now, claim, true).unwrap();
    let all = bench.submit(job("j2", request(4000, 0, 1000, 1024)));
    assert!(bench.round().placed(all));
    assert!(!bench.ledger.move_claim(bench.now, claim, ClaimState::Held).unwrap());
    assert!(!bench.ledger.member_ended(bench.now, claim, false).unwrap());
    assert!(!bench.ledger.refuse_start(bench.now, claim, "no free card").unwrap());
    let state = bench.ledger.state();
    let job = state.job(over).unwrap();
    assert_eq!((job.state, job.attempts, job.claims.len()), (JobState::Succeeded, 1, 0));
    assert_eq!(state.nodes().next().unwrap().gpu_free().0, 0);
    state.audit().unwrap();
}

#[test]
fn a_held_card_stays_what_it_was_when_another_is_described_in_its_place() {
    let mut bench = Bench::new([node("n1", 8000, 65_536, 2, 81_920)]);
    assert!(placed(&mut bench, job("j1", request(500, 60_000, 1000, 1024))));
    // The held card shrinks below what is promised, or is of another model.
    for other in [CardSpec::new("A100", Mib(40_960)), CardSpec::new("T4", Mib(81_920))] {
        let mut spec = node("n1", 8000, 65_536, 0, 1);
        spec.cards = vec![other.clone(), other];
        bench.change(spec);
        let node = bench.ledger.state().node(NodeUid(0)).unwrap();
        assert_eq!((&*node.spec.cards[0].model, node.spec.cards[0].memory), ("A100", Mib(81_920)));
        assert!(!node.spec.cards[0].healthy, "nothing new comes onto it");
        assert!(node.spec.cards[1].healthy);
    }
    // It is cut away under its holder, or the holder's cards are not named.
    let geometry = Arc::new(Geometry::of_model("A100").unwrap());
    let cut = CardSpec { mig: MigMode::Free(geometry), ..CardSpec::new("A100", Mib(81_920)) };
    bench.change(node("n1", 8000, 65_536, 0, 1).with_cards(2, &cut));
    bench.change(node("n1", 8000, 65_536, 0, 1));
    assert_eq!(bench.ledger.state().node(NodeUid(0)).unwrap().spec.cards.len(), 1);
    // What still holds its promise is taken as described.
    let grown = CardSpec { numa: Some(1), ..CardSpec::new("A100", Mib(90_000)) };
    bench.change(node("n1", 8000, 65_536, 0, 1).with_cards(2, &grown));
    assert_eq!(bench.ledger.state().node(NodeUid(0)).unwrap().spec.cards[0], grown);
}

#[test]
fn instances_in_use_outlive_another_cut_of_their_card() {
    let geometry = Arc::new(Geometry::of_model("A100-40").unwrap());
    let card = |mig| CardSpec { mig, ..CardSpec::new("A100-40", Mib(40_960)) };
    let empty = || NodeSpec { cards: vec![], ..node("n1", 8000, 65_536, 0, 1) };
    let free = card(MigMode::Free(geometry.clone()));
    let mut bench = Bench::new([empty().with_cards(1, &free)]);
    let gpu = Some(GpuAsk::mig(1, "1g.5gb"));
    assert!(placed(&mut bench, job("j1", Request { gpu, ..request(0, 0, 1000, 1024) })));
    let place = bench.ledger.state().node(NodeUid(0)).unwrap().cards[0].instances[0].clone();
    // A list that has it keeps it; one that has not, leaves the card sick.
    let fixed = card(MigMode::Fixed { geometry: geometry.clone(), instances: vec![place] });
    bench.change(empty().with_cards(1, &fixed));
    assert_eq!(bench.ledger.state().node(NodeUid(0)).unwrap().spec.cards[0], fixed);
    let none = card(MigMode::Fixed { geometry, instances: vec![] });
    bench.change(empty().with_cards(1, &none));
    assert!(!bench.ledger.state().node(NodeUid(0)).unwrap().spec.cards[0].healthy);
    bench.change(empty().with_cards(1, &card(MigMode::Off)));
    assert!(!bench.ledger.state().node(NodeUid(0)).unwrap().spec.cards[0].healthy);
}

#[test]
fn members_of_one_job_may_take_a_whole_card_here_and_a_part_there() {
    // 10,000 MiB are the whole of one card and two thirds of the other.
    let mut spec = node("n1", 8000, 65_536, 0, 1);
    spec.cards = vec![CardSpec::new("s", Mib(10_000)), CardSpec::new("l", Mib(15_000))];
    let mut bench = Bench::new([spec]);
    let two = JobSpec { members: 2, min_members: 2, ..job("g", request(0, 10_000, 1000, 1024)) };
    let uid = bench.submit(two);
    bench.round();
    let claims = bench.ledger.state().job(uid).unwrap().claims.clone();
    assert_eq!(claims.len(), 2);
    bench.ledger.member_ended(bench.now, claims[0], true).unwrap();
    bench.ledger.state().audit().unwrap();
}
