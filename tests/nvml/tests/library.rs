//! The library as a program sees it that loads NVML.

use crater_nvml_stand_in::{Card, Far, Link, Machine, install};
use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{P2pCapabilitiesIndex, P2pStatus};
use nvml_wrapper::error::NvmlError;
use std::path::Path;

fn two_cards() -> Machine {
    let mut cards = vec![Card::new(0, "Tesla T4", 15_109), Card::new(1, "Tesla T4", 15_109)];
    cards[0].links = vec![Link { to: Far::Card, pci: cards[1].pci.clone(), up: true }];
    cards[1].used_mib = 109;
    cards[1].busy_percent = 42;
    cards[1].mig = Some(false);
    Machine { cards, ..Machine::default() }
}

fn load(folder: &Path, machine: &Machine) -> Result<Nvml, NvmlError> {
    let library = install(folder, machine);
    Nvml::builder().lib_path(library.as_os_str()).init()
}

#[test]
fn every_function_answers_from_the_description() {
    let folder = tempfile::tempdir().unwrap();
    let nvml = load(folder.path(), &two_cards()).unwrap();
    assert_eq!(nvml.sys_driver_version().unwrap(), "550.54.15");
    assert_eq!(nvml.sys_nvml_version().unwrap(), "12.550.54.15");
    assert_eq!(nvml.sys_cuda_driver_version().unwrap(), 12_040);
    assert_eq!(nvml.device_count().unwrap(), 2);
    let [first, second] = [0, 1].map(|index| nvml.device_by_index(index).unwrap());
    assert!(matches!(nvml.device_by_index(2), Err(NvmlError::InvalidArg)));

    let uuid = second.uuid().unwrap();
    assert_eq!(uuid, "GPU-00000000-0000-4000-8000-000000000001");
    let same = nvml.device_by_uuid(uuid).unwrap();
    assert_eq!((same.index().unwrap(), same.minor_number().unwrap()), (1, 1));
    assert!(matches!(nvml.device_by_uuid("GPU-other"), Err(NvmlError::NotFound)));

    assert_eq!(second.name().unwrap(), "Tesla T4");
    let pci = second.pci_info().unwrap();
    assert_eq!((&*pci.bus_id, pci.domain, pci.bus, pci.device), ("00000000:02:00.0", 0, 2, 0));
    let memory = second.memory_info().unwrap();
    assert_eq!((memory.total >> 20, memory.free >> 20), (15_109, 15_000));
    assert_eq!(second.utilization_rates().unwrap().gpu, 42);
    assert_eq!(second.mig_mode().unwrap().current, 0);
    assert!(matches!(first.mig_mode(), Err(NvmlError::NotSupported)));

    let by_nvlink = |one: &nvml_wrapper::Device<'_>, other: &nvml_wrapper::Device<'_>| {
        one.p2p_status(other, P2pCapabilitiesIndex::NvLink).unwrap()
    };
    assert_eq!(by_nvlink(&first, &second), P2pStatus::Ok);
    assert_eq!(by_nvlink(&second, &first), P2pStatus::NotSupported);
    let link = first.link_wrapper_for(0);
    assert!(link.is_active().unwrap());
    assert_eq!(link.remote_pci_info().unwrap().bus_id, "00000000:02:00.0");
    assert!(matches!(first.link_wrapper_for(1).is_active(), Err(NvmlError::InvalidArg)));
    // What is not here is missing, as in an old driver.
    assert!(matches!(first.brand(), Err(NvmlError::FailedToLoadSymbol(_))));
    nvml.shutdown().unwrap();
}

#[test]
fn failures_are_asked_for_by_function() {
    let folder = tempfile::tempdir().unwrap();
    let mut machine = two_cards();
    machine.cards[0].fail.insert("nvmlDeviceGetName".into(), 15);
    let nvml = load(folder.path(), &machine).unwrap();
    let [first, second] = [0, 1].map(|index| nvml.device_by_index(index).unwrap());
    assert!(matches!(first.name(), Err(NvmlError::GpuLost)));
    assert_eq!(second.name().unwrap(), "Tesla T4", "of the other card only");
    machine.fail.insert("nvmlDeviceGetCount_v2".into(), 999);
    install(folder.path(), &machine);
    assert!(matches!(nvml.device_count(), Err(NvmlError::Unknown)), "from now on");
    std::fs::write(folder.path().join("machine.json"), "{").unwrap();
    assert!(matches!(nvml.device_count(), Err(NvmlError::DriverNotLoaded)));
}
