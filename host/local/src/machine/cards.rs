//! The machine's cards, by NVIDIA's management library.
//!
//! The library is loaded when it is asked for, so that Crater runs where there
//! is no driver. Only safe calls of the wrapper are used, and of those none
//! that it answers wrongly: `possible_placements` is always empty there, and
//! `remote_device_type` always unknown.

use super::{FindError, files};
use nvml_wrapper::enum_wrappers::device::{P2pCapabilitiesIndex, P2pStatus};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use std::fmt;
use std::path::{Path, PathBuf};

/// Most links that a card has: the header of NVML 13 says 36, where the
/// wrapper's constant says 18.
const MOST_LINKS: u32 = 36;

/// Where the driver's library is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// `libnvidia-ml.so.1`, where the system's loader finds it. None there
    /// means a machine without cards.
    #[default]
    System,
    /// This file. None there is an error.
    At(PathBuf),
    /// Nowhere: the machine's cards are left out.
    Off,
}

impl Driver {
    /// What `CRATER_NVML` says: nothing or an empty word is the system's,
    /// `off` none, anything else a path.
    pub fn from_env() -> Self {
        match std::env::var_os("CRATER_NVML") {
            None => Self::System,
            Some(word) if word.is_empty() => Self::System,
            Some(word) if word == "off" => Self::Off,
            Some(path) => Self::At(path.into()),
        }
    }
}

/// Why a machine has no cards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoCards {
    /// They were not looked for.
    Off,
    /// There is no library to ask, in the loader's words.
    NoLibrary(String),
    /// There is a library and no driver in the kernel.
    NotLoaded,
    /// The driver knows of none.
    None,
}

impl fmt::Display for NoCards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("no cards: not looked for"),
            Self::NoLibrary(why) => write!(f, "no cards: no NVIDIA driver is installed ({why})"),
            Self::NotLoaded => f.write_str("no cards: the NVIDIA driver is not loaded"),
            Self::None => f.write_str("no cards: the NVIDIA driver knows of none"),
        }
    }
}

/// A card of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// Its place in [`super::Machine::cards`], and the driver's index.
    pub index: u32,
    /// Its identity, `GPU-` and 36 characters; empty of a card that was lost
    /// before it could be asked.
    pub uuid: String,
    /// The driver's name for the model, as `NVIDIA H100 80GB HBM3`.
    pub model: String,
    /// Memory as the driver reports it, in MiB.
    pub memory_mib: u64,
    /// The NUMA node on whose PCI bus it is.
    pub numa: Option<u16>,
    /// Where it is on the PCI bus, as below `/sys/bus/pci/devices`:
    /// `0000:1b:00.0`.
    pub pci: String,
    /// The number of its file, `/dev/nvidia<minor>`.
    pub minor: Option<u32>,
    /// Whether it is cut into MIG instances; `None` of a model that cannot be.
    pub mig: Option<bool>,
    /// Indices of the cards that it reaches by `NVLink`, directly or through a
    /// switch, in order.
    pub links: Vec<u32>,
    /// Why it may not be used, in the driver's words.
    pub sick: Option<String>,
}

impl Card {
    /// Whether it may be used.
    pub fn healthy(&self) -> bool {
        self.sick.is_none()
    }
}

/// A call that a card did not answer.
struct Failed {
    call: &'static str,
    source: NvmlError,
}

/// Asks the driver for every card. `root` is where the PCI bus is described.
pub fn find(root: &Path, driver: &Driver) -> Result<Result<Vec<Card>, NoCards>, FindError> {
    let nvml = match driver {
        Driver::Off => return Ok(Err(NoCards::Off)),
        Driver::System => Nvml::init(),
        Driver::At(path) => Nvml::builder().lib_path(path.as_os_str()).init(),
    };
    let nvml = match (nvml, driver) {
        (Ok(nvml), _) => nvml,
        (Err(NvmlError::DriverNotLoaded), _) => return Ok(Err(NoCards::NotLoaded)),
        (Err(NvmlError::LibloadingError(why)), Driver::System) => {
            return Ok(Err(NoCards::NoLibrary(why.to_string())));
        }
        (Err(source @ NvmlError::LibloadingError(_)), Driver::At(path)) => {
            return Err(FindError::Library { path: path.clone(), source });
        }
        (Err(source), _) => return Err(FindError::Driver { call: "nvmlInit_v2", source }),
    };
    let count = nvml.device_count();
    let count =
        count.map_err(|source| FindError::Driver { call: "nvmlDeviceGetCount_v2", source })?;
    if count == 0 {
        return Ok(Err(NoCards::None));
    }
    let mut cards = vec![];
    let mut handles = vec![];
    for index in 0..count {
        let mut card = Card { index, ..Card::default() };
        let told = handle(&nvml, index).and_then(|handle| {
            describe(&handle, root, &mut card)?;
            Ok(handle)
        });
        handles.push(known(&mut card, told)?);
        cards.push(card);
    }
    let links = links(&handles, &cards)?;
    for (card, links) in cards.iter_mut().zip(links) {
        card.links = links;
    }
    Ok(Ok(cards))
}

/// What a card told. One that was lost, needs a reset or cannot say how much
/// memory it has is sick; any other failure is the driver's, and no machine is
/// described by halves.
fn known<T>(card: &mut Card, told: Result<T, Failed>) -> Result<Option<T>, FindError> {
    use NvmlError::{GpuLost, NotSupported, ResetRequired};
    match told {
        Ok(told) => Ok(Some(told)),
        Err(Failed { call, source: source @ (GpuLost | ResetRequired | NotSupported) }) => {
            card.sick = Some(format!("{call}: {source}"));
            Ok(None)
        }
        Err(Failed { call, source }) => {
            Err(FindError::Card { index: card.index, uuid: card.uuid.clone(), call, source })
        }
    }
}

fn said<T>(call: &'static str, answer: Result<T, NvmlError>) -> Result<T, Failed> {
    answer.map_err(|source| Failed { call, source })
}

/// An answer that a card need not have: by its model, or by an older driver.
fn perhaps<T>(call: &'static str, answer: Result<T, NvmlError>) -> Result<Option<T>, Failed> {
    match answer {
        Err(
            NvmlError::NotSupported
            | NvmlError::FunctionNotFound
            | NvmlError::FailedToLoadSymbol(_),
        ) => Ok(None),
        answer => said(call, answer).map(Some),
    }
}

fn handle(nvml: &Nvml, index: u32) -> Result<Device<'_>, Failed> {
    said("nvmlDeviceGetHandleByIndex_v2", nvml.device_by_index(index))
}

fn describe(device: &Device<'_>, root: &Path, card: &mut Card) -> Result<(), Failed> {
    card.uuid = said("nvmlDeviceGetUUID", device.uuid())?;
    card.model = said("nvmlDeviceGetName", device.name())?;
    card.pci = pci(&said("nvmlDeviceGetPciInfo_v3", device.pci_info())?.bus_id);
    card.minor = perhaps("nvmlDeviceGetMinorNumber", device.minor_number())?;
    // The driver's own `numa_node_id` is of cards that are a node themselves.
    let numa = root.join("sys/bus/pci/devices").join(&card.pci).join("numa_node");
    // Negative, and so no number here, where the firmware does not say.
    card.numa = files::value(&numa);
    card.memory_mib = said("nvmlDeviceGetMemoryInfo_v2", device.memory_info())?.total >> 20;
    card.mig = perhaps("nvmlDeviceGetMigMode", device.mig_mode())?.map(|mode| mode.current == 1);
    Ok(())
}

/// `00000000:1B:00.0` of the driver as the kernel writes it: `0000:1b:00.0`.
fn pci(bus_id: &str) -> String {
    let id = bus_id.to_ascii_lowercase();
    match id.split_once(':') {
        Some((domain, rest)) if domain.len() == 8 && domain.starts_with("0000") => {
            format!("{}:{rest}", &domain[4..])
        }
        _ => id,
    }
}

/// The cards that each reaches by `NVLink`. The driver is asked about each
/// pair, which holds for links to a switch too; only one that does not know
/// pairs is asked where each link leads. Cards that are lost have no handle and
/// no links.
fn links(handles: &[Option<Device<'_>>], cards: &[Card]) -> Result<Vec<Vec<u32>>, FindError> {
    let there: Vec<_> =
        cards.iter().zip(handles).filter_map(|(c, h)| Some((c, h.as_ref()?))).collect();
    let of = |card: &Card, Failed { call, source }| FindError::Card {
        index: card.index,
        uuid: card.uuid.clone(),
        call,
        source,
    };
    let mut pairs = vec![];
    for (card, handle) in &there {
        for (peer, other) in there.iter().filter(|(peer, _)| peer.index != card.index) {
            let status = handle.p2p_status(other, P2pCapabilitiesIndex::NvLink);
            let status = there_yet("nvmlDeviceGetP2PStatus", status).map_err(|f| of(card, f))?;
            pairs.push((*card, *peer, status.map(|status| status == P2pStatus::Ok)));
        }
    }
    let mut ends = vec![vec![]; cards.len()];
    if pairs.iter().any(|(_, _, linked)| linked.is_none()) {
        for (card, handle) in &there {
            ends[card.index as usize] = self::ends(handle).map_err(|f| of(card, f))?;
        }
    }
    let by_ends = |card: &Card, peer: &Card| {
        let [here, there] = [card, peer].map(|card| &ends[card.index as usize]);
        // The far end of both is a switch; another card passes nothing on.
        let mut shared = here.iter().filter(|end| there.contains(end));
        here.contains(&peer.pci) || shared.any(|end| cards.iter().all(|card| card.pci != *end))
    };
    let mut links = vec![vec![]; cards.len()];
    for (card, peer, linked) in pairs {
        if linked.unwrap_or_else(|| by_ends(card, peer)) {
            links[card.index as usize].push(peer.index);
        }
    }
    Ok(links)
}

/// As [`perhaps`]. A card that is lost while its links are read has none:
/// which of a pair it is, the driver does not say.
fn there_yet<T>(call: &'static str, answer: Result<T, NvmlError>) -> Result<Option<T>, Failed> {
    match answer {
        Err(NvmlError::GpuLost | NvmlError::ResetRequired) => Ok(None),
        answer => perhaps(call, answer),
    }
}

/// Where a card's links lead that are up.
fn ends(device: &Device<'_>) -> Result<Vec<String>, Failed> {
    let mut ends = vec![];
    for number in 0..MOST_LINKS {
        let link = device.link_wrapper_for(number);
        let active = match link.is_active() {
            // There are no more.
            Err(NvmlError::InvalidArg) => break,
            active => there_yet("nvmlDeviceGetNvLinkState", active)?,
        };
        if active == Some(true)
            && let Some(end) =
                there_yet("nvmlDeviceGetNvLinkRemotePciInfo_v2", link.remote_pci_info())?
        {
            ends.push(pci(&end.bus_id));
        }
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::pci;

    #[test]
    fn bus_ids_are_written_as_the_kernel_does() {
        assert_eq!(pci("00000000:1B:00.0"), "0000:1b:00.0");
        assert_eq!(pci("0000:C1:00.0"), "0000:c1:00.0");
        assert_eq!(pci("00010000:00:00.0"), "00010000:00:00.0", "a domain beyond four digits");
    }
}
