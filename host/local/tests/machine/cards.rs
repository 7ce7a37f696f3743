//! Cards, as a stand-in for NVIDIA's library tells of them.

use crate::folder::Folder;
use crater_local::machine::{Driver, FindError, Machine, NoCards, Offer, find, find_with};
use crater_model::{CardShare, Held, MilliCards};
use crater_nvml_stand_in::{Card, Far, Link, Machine as Description, install};
use std::error::Error as _;
use std::path::Path;
use std::process::Command;

const LOST: u32 = 15;
const NOT_SUPPORTED: u32 = 3;
const UNKNOWN: u32 = 999;

fn cards(count: u32) -> Vec<Card> {
    (0..count).map(|index| Card::new(index, "NVIDIA H100 80GB HBM3", 81_559)).collect()
}

/// Two nodes of four cores; the bus numbers of cards begin at one.
fn server(cards: &[Card]) -> Folder {
    let half = cards.len().div_ceil(2);
    let mut folder =
        Folder::new("gpu-01", "0-7", 64_000).node(0, "0-3", 32_000).node(1, "4-7", 32_000);
    for (index, card) in cards.iter().enumerate() {
        let file = format!("sys/bus/pci/devices/{}/numa_node", card.pci);
        folder = folder.file(&file, if index < half { "0" } else { "1" });
    }
    folder
}

fn described(description: &Description) -> Result<Machine, FindError> {
    let folder = server(&description.cards);
    let library = tempfile::tempdir().unwrap();
    let library = install(library.path(), description);
    find_with(folder.path(), &Driver::At(library))
}

fn with(cards: Vec<Card>) -> Machine {
    described(&Description { cards, ..Description::default() }).unwrap()
}

fn link(to: Far, pci: &str) -> Link {
    Link { to, pci: pci.into(), up: true }
}

fn links(machine: &Machine) -> Vec<&[u32]> {
    machine.cards.iter().map(|card| &*card.links).collect()
}

fn held(cards: &[u8]) -> Held {
    let share = |card: &u8| {
        let memory = crater_model::Mib(81_559);
        CardShare { card: *card, milli: MilliCards::CARD, memory, instance: None }
    };
    Held { cards: cards.iter().map(share).collect(), whole: true, ..Held::default() }
}

/// Two links of each card to each of two switches.
fn behind_switches(mut cards: Vec<Card>) -> Vec<Card> {
    for card in &mut cards {
        let switch = |pci: &&str| link(Far::Switch, pci);
        card.links = ["0000:e1:00.0", "0000:e1:00.0", "0000:e2:00.0"].iter().map(switch).collect();
    }
    cards
}

/// Links of each card to its neighbours in a ring.
fn ring(mut cards: Vec<Card>) -> Vec<Card> {
    let places: Vec<String> = cards.iter().map(|card| card.pci.clone()).collect();
    for (index, card) in cards.iter_mut().enumerate() {
        let neighbour = |step: usize| &*places[(index + step) % places.len()];
        card.links =
            vec![link(Far::Card, neighbour(1)), link(Far::Card, neighbour(places.len() - 1))];
    }
    cards
}

#[test]
fn eight_cards_behind_switches() {
    let machine = with(behind_switches(cards(8)));
    let last = &machine.cards[7];
    assert_eq!(last.uuid, "GPU-00000000-0000-4000-8000-000000000007");
    assert_eq!((&*last.model, last.memory_mib), ("NVIDIA H100 80GB HBM3", 81_559));
    assert_eq!((&*last.pci, last.numa, last.minor), ("0000:08:00.0", Some(1), Some(7)));
    assert_eq!((last.mig, &last.sick), (None, &None));
    assert_eq!(last.links, [0, 1, 2, 3, 4, 5, 6]);
    let spec = machine.node_spec(&Offer::default());
    assert_eq!(spec.check(), Ok(()));
    assert_eq!(spec.links.groups, [0; 8]);
    let numa: Vec<_> = spec.cards.iter().map(|card| card.numa.unwrap()).collect();
    assert_eq!(numa, [0, 0, 0, 0, 1, 1, 1, 1]);
    assert!(spec.cards.iter().all(|card| card.healthy));

    assert_eq!(machine.cores_for(&held(&[5])).unwrap(), "4-7");
    assert_eq!(machine.cores_for(&held(&[3, 4])).unwrap(), "0-7");
    assert_eq!(machine.cores_for(&held(&[])), None);
}

#[test]
fn links_of_a_driver_that_does_not_know_pairs() {
    let old = |mut cards: Vec<Card>, code| {
        for card in &mut cards {
            card.fail.insert("nvmlDeviceGetP2PStatus".into(), code);
        }
        with(cards)
    };
    let expected: [&[u32]; 4] = [&[1, 3], &[0, 2], &[1, 3], &[0, 2]];
    assert_eq!(links(&with(ring(cards(4)))), expected);
    assert_eq!(links(&old(ring(cards(4)), NOT_SUPPORTED)), expected, "a card passes nothing on");
    let all: [&[u32]; 3] = [&[1, 2], &[0, 2], &[0, 1]];
    assert_eq!(links(&old(behind_switches(cards(3)), NOT_SUPPORTED)), all);
    let mut broken = behind_switches(cards(2));
    broken[0].links.iter_mut().for_each(|link| link.up = false);
    let none: [&[u32]; 2] = [&[], &[]];
    assert_eq!(links(&old(broken, NOT_SUPPORTED)), none);
}

#[test]
fn a_lost_card_is_there_and_sick() {
    let mut all = behind_switches(cards(4));
    all[0].fail.insert("nvmlDeviceGetHandleByIndex_v2".into(), LOST);
    all[2].fail.insert("nvmlDeviceGetMemoryInfo_v2".into(), LOST);
    // As of a card that has its memory in common with the machine.
    all[3].fail.insert("nvmlDeviceGetMemoryInfo_v2".into(), NOT_SUPPORTED);
    let machine = with(all);
    let why: Vec<_> = machine.cards.iter().map(|card| card.sick.as_deref()).collect();
    let lost = "device fell off the bus or has otherwise become inacessible";
    assert_eq!(why[0].unwrap(), format!("nvmlDeviceGetHandleByIndex_v2: {lost}"));
    assert_eq!(why[1], None);
    assert_eq!(why[2].unwrap(), format!("nvmlDeviceGetMemoryInfo_v2: {lost}"));
    assert!(machine.cards[0].uuid.is_empty() && !machine.cards[2].uuid.is_empty());
    let not_here = "the requested operation is not available on the target device";
    assert_eq!(why[3].unwrap(), format!("nvmlDeviceGetMemoryInfo_v2: {not_here}"));
    let none: [&[u32]; 4] = [&[]; 4];
    assert_eq!(links(&machine), none, "no links to what is lost");
    assert_eq!(machine.node_spec(&Offer::default()).check(), Ok(()));
}

#[test]
fn a_card_cut_into_instances_is_closed() {
    let mut all = cards(2);
    all[0].mig = Some(false);
    all[1].mig = Some(true);
    let machine = with(all);
    assert_eq!(machine.cards[0].closed(), None);
    assert!(machine.cards[1].healthy() && machine.cards[1].closed().unwrap().contains("MIG"));
}

#[test]
fn no_driver_is_no_error() {
    let with_code = |function: &str, code| {
        let fail = [(function.to_owned(), code)].into();
        described(&Description { cards: cards(1), fail, ..Description::default() })
    };
    let not_loaded = with_code("nvmlInit_v2", 9).unwrap();
    assert_eq!((not_loaded.cards.len(), not_loaded.no_cards), (0, Some(NoCards::NotLoaded)));
    assert_eq!(with(vec![]).no_cards, Some(NoCards::None));
    // A version that can be told is not needed.
    assert_eq!(with_code("nvmlSystemGetDriverVersion", UNKNOWN).unwrap().cards.len(), 1);
}

#[test]
fn a_driver_that_fails_is_an_error_that_names_what_failed() {
    let mut all = cards(2);
    all[1].fail.insert("nvmlDeviceGetName".into(), UNKNOWN);
    let error = described(&Description { cards: all, ..Description::default() }).unwrap_err();
    let uuid = "GPU-00000000-0000-4000-8000-000000000001";
    assert_eq!(
        error.to_string(),
        format!(
            "the NVIDIA driver failed at nvmlDeviceGetName for card 1, {uuid} \
             (CRATER_NVML=off leaves cards out)"
        )
    );
    assert_eq!(error.source().unwrap().to_string(), "an internal driver error occurred");
    let mismatch = [("nvmlInit_v2".to_owned(), 18)].into();
    let error = described(&Description { fail: mismatch, ..Description::default() }).unwrap_err();
    assert!(matches!(error, FindError::Driver { call: "nvmlInit_v2", .. }), "{error}");
    let nowhere = Driver::At("/no/such/libnvidia-ml.so.1".into());
    let error = find_with(server(&[]).path(), &nowhere).unwrap_err();
    assert!(matches!(error, FindError::Library { .. }), "{error}");
}

#[test]
fn a_card_that_falls_ill_is_seen_at_the_next_look() {
    let folder = tempfile::tempdir().unwrap();
    let root = server(&[]);
    let mut description = Description { cards: cards(1), ..Description::default() };
    let driver = Driver::At(install(folder.path(), &description));
    assert!(find_with(root.path(), &driver).unwrap().cards[0].healthy());
    description.cards[0].fail.insert("nvmlDeviceGetUUID".into(), 16);
    install(folder.path(), &description);
    let sick = find_with(root.path(), &driver).unwrap().cards.remove(0).sick.unwrap();
    assert!(sick.ends_with("requires a reset before it can be used again"), "{sick}");
}

/// Not a test by itself: what the next one starts, to see cards as a process
/// does whose loader finds the library.
#[test]
fn said_by_a_process() {
    if std::env::var_os("CRATER_SAY_CARDS").is_some() {
        let machine = find(Path::new("/")).unwrap();
        let uuids: Vec<_> = machine.cards.iter().map(|card| &*card.uuid).collect();
        println!("cards: {} {:?}", uuids.join(","), machine.no_cards);
    }
}

#[test]
fn a_process_sees_the_cards_of_its_library() {
    let folder = tempfile::tempdir().unwrap();
    let library =
        install(folder.path(), &Description { cards: cards(2), ..Description::default() });
    let one = folder.path().join("one.json");
    std::fs::write(&one, r#"{"cards": [{"uuid": "GPU-one", "name": "T4", "memory_mib": 100}]}"#)
        .unwrap();
    let says = |variables: &[(&str, &Path)]| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cards::said_by_a_process", "--nocapture"])
            .env("CRATER_SAY_CARDS", "1")
            .env_remove("CRATER_NVML")
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find_map(|line| line.split_once("cards: "));
        line.unwrap_or_else(|| panic!("{text}")).1.to_owned()
    };
    let uuid = |n: u32| format!("GPU-00000000-0000-4000-8000-{n:012}");
    let two = format!("{},{} None", uuid(0), uuid(1));
    assert_eq!(says(&[("LD_LIBRARY_PATH", folder.path())]), two);
    assert_eq!(says(&[("CRATER_NVML", &library)]), two);
    let named = [("LD_LIBRARY_PATH", folder.path()), ("CRATER_NVML_MACHINE", &*one)];
    assert_eq!(says(&named), "GPU-one None");
    let off = [("LD_LIBRARY_PATH", folder.path()), ("CRATER_NVML", Path::new("off"))];
    assert_eq!(says(&off), " Some(Off)");
}
