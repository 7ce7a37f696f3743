//! What the machine offers to the books, and what a claim on it means for the
//! process that holds it.

use super::{Card, Machine, cores};
use crater_model::id::check_name;
use crater_model::{CardSpec, Held, Iops, Links, MbPerSec, Mib, NodeSpec};
use std::collections::BTreeSet;

/// What a machine cannot say of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Memory that is promised to no job: the system's, and the server's own.
    pub reserve: Mib,
    /// Disk bandwidth that may be reserved.
    pub disk: MbPerSec,
    /// Disk operations that may be reserved.
    pub iops: Iops,
}

impl Default for Offer {
    /// 1 GiB kept back, no disk bandwidth to reserve.
    fn default() -> Self {
        Self { reserve: Mib(1024), disk: MbPerSec::ZERO, iops: Iops::ZERO }
    }
}

impl Card {
    /// Why no job may have it: it is sick, or it is cut into MIG instances,
    /// which are not given out here.
    pub fn closed(&self) -> Option<&str> {
        let mig =
            "MIG is on; its instances are not given out here (nvidia-smi -mig 0 turns it off)";
        self.sick.as_deref().or_else(|| (self.mig == Some(true)).then_some(mig))
    }
}

impl Machine {
    /// The machine as the books know it. Cards keep their places: one that is
    /// lost or cut by MIG is there and closed.
    pub fn node_spec(&self, offer: &Offer) -> NodeSpec {
        let memory = Mib(self.memory_mib) - offer.reserve;
        let card = |card: &Card| {
            // A lost card may not have said what it is.
            let model = if card.model.is_empty() { "unknown" } else { &card.model };
            let memory = Mib(card.memory_mib.max(1));
            let healthy = card.closed().is_none();
            CardSpec { numa: card.numa, healthy, ..CardSpec::new(model, memory) }
        };
        NodeSpec {
            disk: offer.disk,
            iops: offer.iops,
            cards: self.cards.iter().map(card).collect(),
            links: Links { groups: self.link_groups(), bandwidth: vec![] },
            ..NodeSpec::new(&node_name(&self.name), self.cpu, memory)
        }
    }

    /// Groups of cards of which each reaches each other by `NVLink`; none if no
    /// card has any. Where links are no such sets (a mesh of eight, each linked
    /// to four), a card joins the first group that it is whole with.
    fn link_groups(&self) -> Vec<u16> {
        if self.cards.iter().all(|card| card.links.is_empty()) {
            return vec![];
        }
        let mut groups: Vec<Vec<u32>> = vec![];
        let join = self.cards.iter().map(|card| {
            let whole = |group: &Vec<u32>| group.iter().all(|peer| card.links.contains(peer));
            let place = groups.iter().position(whole).unwrap_or_else(|| {
                groups.push(vec![]);
                groups.len() - 1
            });
            groups[place].push(card.index);
            place as u16
        });
        join.collect()
    }

    /// The cores next to the cards of a claim, as a list for `cpuset.cpus`:
    /// those of the cards' NUMA nodes that this process may use. `None` if the
    /// claim holds no card, the node of one is not known, or none of its cores
    /// may be used.
    pub fn cores_for(&self, held: &Held) -> Option<String> {
        let mut near = BTreeSet::new();
        for share in &held.cards {
            let numa = self.cards.get(usize::from(share.card))?.numa?;
            let node = self.numa.iter().find(|node| node.id == numa)?;
            near.extend(node.cpus.iter().copied());
        }
        let near: Vec<u32> = near.into_iter().collect();
        (!near.is_empty()).then(|| cores::print(&near))
    }
}

/// The variables by which a process sees the cards of its claim and no others,
/// and with `mps` keeps to its shares of them.
///
/// * `CUDA_VISIBLE_DEVICES` holds the cards' UUIDs, in the order of the claim,
///   which is the order that CUDA numbers them in. It is there and empty for a
///   claim without cards: a process sees none then.
/// * `NVIDIA_VISIBLE_DEVICES` says the same to a container runtime; `void` is
///   its word for none.
/// * With MPS, for shares of cards: `CUDA_MPS_ACTIVE_THREAD_PERCENTAGE`, whole
///   percents and at least one, is one number for all cards, so the least of
///   the shares; it limits computing and not memory.
///   `CUDA_MPS_PINNED_DEVICE_MEM_LIMIT` names each card's memory as
///   `<uuid>=<MiB>M`. NVIDIA's manual allows ordinals too, with the meaning that
///   they have in `CUDA_VISIBLE_DEVICES`, so of the server's cards and not of
///   the claim's (nebuly-ai/nos#38: `0=` limits nobody on the second card); a
///   UUID is the same card to everybody. Both hold for each process by itself,
///   and can only tighten what the control daemon is set to.
///
/// A MIG instance, or a card that this machine does not have or lost, is left
/// out: nobody is shown more than the claim says.
pub fn gpu_environment(machine: &Machine, held: &Held, mps: bool) -> Vec<(String, String)> {
    let shares = held.cards.iter().filter(|share| share.instance.is_none()).filter_map(|share| {
        let card = machine.cards.get(usize::from(share.card))?;
        (!card.uuid.is_empty()).then_some((share, &*card.uuid))
    });
    let shares: Vec<_> = shares.collect();
    let list = |of: Vec<String>| of.join(",");
    let uuids = list(shares.iter().map(|(_, uuid)| (*uuid).to_owned()).collect());
    let nvidia = if uuids.is_empty() { "void".to_owned() } else { uuids.clone() };
    let mut variables = vec![("CUDA_VISIBLE_DEVICES", uuids), ("NVIDIA_VISIBLE_DEVICES", nvidia)];
    let least = shares.iter().map(|(share, _)| share.milli.0).min();
    if let Some(least) = least.filter(|_| mps && !held.whole) {
        let percent = (least / 10).clamp(1, 100);
        let memory = shares.iter().map(|(share, uuid)| format!("{uuid}={}M", share.memory.0));
        variables.push(("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent.to_string()));
        variables.push(("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", list(memory.collect())));
    }
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A host's name as a node's: lower-case letters, digits, `-` and `.`, at most
/// 63 of them; `local` if nothing is left.
fn node_name(host: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let name: String = host.to_ascii_lowercase().chars().map(plain).take(63).collect();
    let name = name.trim_matches(['-', '.']);
    if check_name("node name", name).is_ok() { name.to_owned() } else { "local".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crater_model::{CardShare, MilliCards, MilliCores};

    fn machine(links: &[&[u32]]) -> Machine {
        let card = |(index, links): (u32, &&[u32])| Card {
            index,
            uuid: format!("GPU-{index}"),
            model: "T4".into(),
            memory_mib: 15_109,
            links: links.to_vec(),
            ..Card::default()
        };
        Machine { cards: (0..).zip(links).map(card).collect(), ..Machine::default() }
    }

    fn held(shares: &[(u8, u64, u64)]) -> Held {
        let share = |(card, milli, mib): &(u8, u64, u64)| CardShare {
            card: *card,
            milli: MilliCards(*milli),
            memory: Mib(*mib),
            instance: None,
        };
        Held { cards: shares.iter().map(share).collect(), ..Held::default() }
    }

    fn variables(machine: &Machine, held: &Held, mps: bool) -> Vec<String> {
        let variables = gpu_environment(machine, held, mps);
        variables.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    #[test]
    fn a_claim_without_cards_sees_none() {
        let none = ["CUDA_VISIBLE_DEVICES=", "NVIDIA_VISIBLE_DEVICES=void"];
        assert_eq!(variables(&machine(&[&[]]), &held(&[]), true), none);
        assert_eq!(variables(&machine(&[]), &held(&[(0, 1000, 15_109)]), false), none);
    }

    #[test]
    fn whole_cards_are_not_limited() {
        let machine = machine(&[&[], &[], &[]]);
        let whole = Held { whole: true, ..held(&[(0, 1000, 15_109), (2, 1000, 15_109)]) };
        assert_eq!(
            variables(&machine, &whole, true),
            ["CUDA_VISIBLE_DEVICES=GPU-0,GPU-2", "NVIDIA_VISIBLE_DEVICES=GPU-0,GPU-2"]
        );
    }

    #[test]
    fn shares_are_limited_by_mps() {
        let machine = machine(&[&[], &[]]);
        let shares = held(&[(0, 339, 4096), (1, 500, 7000)]);
        assert_eq!(
            variables(&machine, &shares, true)[2..],
            [
                "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=33",
                "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=GPU-0=4096M,GPU-1=7000M",
            ]
        );
        assert_eq!(variables(&machine, &shares, false).len(), 2);
        assert_eq!(
            variables(&machine, &held(&[(0, 4, 100)]), true)[2],
            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=1",
            "nought would be no limit"
        );
    }

    #[test]
    fn an_instance_never_shows_the_whole_card() {
        let mut share = held(&[(0, 500, 4096)]);
        let instance = crater_model::mig::Instance { profile: "1g.5gb".into(), start: 0 };
        share.cards[0].instance = Some(instance);
        assert_eq!(variables(&machine(&[&[]]), &share, true)[0], "CUDA_VISIBLE_DEVICES=");
    }

    #[test]
    fn groups_are_cards_that_all_reach_each_other() {
        let groups = |links: &[&[u32]]| machine(links).link_groups();
        assert_eq!(groups(&[&[], &[]]), [0_u16; 0]);
        assert_eq!(groups(&[&[1], &[0], &[3], &[2]]), [0, 0, 1, 1]);
        assert_eq!(groups(&[&[1], &[0], &[]]), [0, 0, 1], "alone in a group of its own");
        let ring: [&[u32]; 4] = [&[1, 3], &[0, 2], &[1, 3], &[0, 2]];
        assert_eq!(groups(&ring), [0, 0, 1, 1], "0 and 2 are not linked");
    }

    #[test]
    fn a_lost_card_keeps_its_place_and_is_closed() {
        let mut machine = machine(&[&[], &[], &[]]);
        machine.cards[1] = Card { index: 1, sick: Some("lost".into()), ..Card::default() };
        machine.cards[2].mig = Some(true);
        machine.memory_mib = 500;
        machine.cpu = MilliCores(2500);
        let spec = machine.node_spec(&Offer { disk: MbPerSec(400), ..Offer::default() });
        assert_eq!(spec.check(), Ok(()));
        let healthy: Vec<bool> = spec.cards.iter().map(|card| card.healthy).collect();
        assert_eq!(healthy, [true, false, false]);
        assert_eq!((spec.cpu, spec.memory, spec.disk), (MilliCores(2500), Mib(0), MbPerSec(400)));
        assert_eq!(&*spec.cards[1].model, "unknown");
    }

    #[test]
    fn a_host_name_becomes_a_node_name() {
        let long = "x".repeat(70);
        let names = [
            ("Big_Box.lab", "big-box.lab"),
            ("", "local"),
            ("---", "local"),
            ("训练", "local"),
            (&long, &long[..63]),
        ];
        for (host, name) in names {
            assert_eq!(node_name(host), name, "{host}");
        }
    }
}
