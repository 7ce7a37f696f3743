//! The functions, as `nvml.h` declares them. A pointer that is null is refused;
//! any other is the caller's to write to, as far as that header says.

#![expect(unsafe_code, reason = "names, pointers and what may be done with them are nvml.h's")]

use crate::answer::{
    self, Code, Handle, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, SUCCESS, VERSION_MISMATCH,
    card, put, put_text, system,
};
use crate::description::Card;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong};

// The library.

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> Code {
    answer::start("nvmlInit_v2")
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> Code {
    answer::start("nvmlInitWithFlags")
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> Code {
    answer::stop()
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(code: Code) -> *const c_char {
    let text = match code {
        SUCCESS => c"Success",
        INVALID_ARGUMENT => c"Invalid Argument",
        NOT_SUPPORTED => c"Not Supported",
        NOT_FOUND => c"Not Found",
        answer::DRIVER_NOT_LOADED => c"Driver Not Loaded",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) -> Code {
    system("nvmlSystemGetDriverVersion", |m| unsafe { put_text(version, length, &m.driver) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetNVMLVersion(version: *mut c_char, length: c_uint) -> Code {
    system("nvmlSystemGetNVMLVersion", |m| unsafe { put_text(version, length, &m.nvml) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) -> Code {
    system("nvmlSystemGetCudaDriverVersion_v2", |m| unsafe { put(version, m.cuda) })
}

// Which cards there are.

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> Code {
    system("nvmlDeviceGetCount_v2", |m| unsafe { put(count, m.cards.len() as c_uint) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, handle: *mut Handle) -> Code {
    let own = answer::handle(index as usize);
    card("nvmlDeviceGetHandleByIndex_v2", own, |_, _| unsafe { put(handle, own) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, handle: *mut Handle) -> Code {
    system("nvmlDeviceGetHandleByUUID", |machine| {
        if uuid.is_null() {
            return INVALID_ARGUMENT;
        }
        let uuid = unsafe { CStr::from_ptr(uuid) };
        let same = |card: &Card| card.uuid.as_bytes() == uuid.to_bytes();
        match machine.cards.iter().position(same) {
            Some(index) => unsafe { put(handle, answer::handle(index)) },
            None => NOT_FOUND,
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetIndex(device: Handle, index: *mut c_uint) -> Code {
    card("nvmlDeviceGetIndex", device, |_, _| unsafe { put(index, device as c_uint - 1) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetUUID(device: Handle, uuid: *mut c_char, length: c_uint) -> Code {
    card("nvmlDeviceGetUUID", device, |_, c| unsafe { put_text(uuid, length, &c.uuid) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetName(device: Handle, name: *mut c_char, length: c_uint) -> Code {
    card("nvmlDeviceGetName", device, |_, c| unsafe { put_text(name, length, &c.name) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMinorNumber(device: Handle, minor: *mut c_uint) -> Code {
    card("nvmlDeviceGetMinorNumber", device, |_, c| unsafe { put(minor, c.minor) })
}

// What they are.

/// `nvmlPciInfo_t`
#[repr(C)]
struct PciInfo {
    bus_id_legacy: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    pci_device_id: c_uint,
    pci_sub_system_id: c_uint,
    bus_id: [c_char; 32],
}

impl PciInfo {
    /// Of `0000:1b:00.0`; the driver writes the domain with eight digits.
    fn new(pci: &str) -> Self {
        let number = |at: std::ops::Range<usize>| {
            pci.get(at).and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or_default()
        };
        let upper = pci.to_ascii_uppercase();
        Self {
            bus_id_legacy: answer::field(&upper),
            domain: number(0..4),
            bus: number(5..7),
            device: number(8..10),
            pci_device_id: 0,
            pci_sub_system_id: 0,
            bus_id: answer::field(&format!("0000{upper}")),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(device: Handle, pci: *mut PciInfo) -> Code {
    card("nvmlDeviceGetPciInfo_v3", device, |_, c| unsafe { put(pci, PciInfo::new(&c.pci)) })
}

/// `nvmlMemory_v2_t`
#[repr(C)]
struct MemoryV2 {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: Handle, memory: *mut MemoryV2) -> Code {
    card("nvmlDeviceGetMemoryInfo_v2", device, |_, card| {
        if memory.is_null() {
            return INVALID_ARGUMENT;
        }
        // The size of what is written, and which version of it.
        let version = size_of::<MemoryV2>() as c_uint | 2 << 24;
        if unsafe { (&raw const (*memory).version).read() } != version {
            return VERSION_MISMATCH;
        }
        let (total, used) = (card.memory_mib << 20, card.used_mib << 20);
        let free = total.saturating_sub(used);
        unsafe { put(memory, MemoryV2 { version, total, reserved: 0, free, used }) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMigMode(
    device: Handle,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> Code {
    card("nvmlDeviceGetMigMode", device, |_, card| {
        let Some(mig) = card.mig else { return NOT_SUPPORTED };
        let first = unsafe { put(current, c_uint::from(mig)) };
        if first == SUCCESS { unsafe { put(pending, c_uint::from(mig)) } } else { first }
    })
}

// What they do.

/// `nvmlUtilization_t`
#[repr(C)]
struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetUtilizationRates(
    device: Handle,
    rates: *mut Utilization,
) -> Code {
    card("nvmlDeviceGetUtilizationRates", device, |_, card| match card.mig {
        Some(true) => NOT_SUPPORTED,
        _ => unsafe { put(rates, Utilization { gpu: card.busy_percent, memory: 0 }) },
    })
}

// How they are linked.

const P2P_BY_NVLINK: c_uint = 2;
const P2P_OK: c_uint = 0;
const P2P_NOT_SUPPORTED: c_uint = 5;

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetP2PStatus(
    one: Handle,
    other: Handle,
    index: c_uint,
    status: *mut c_uint,
) -> Code {
    card("nvmlDeviceGetP2PStatus", one, |_, one| {
        card("nvmlDeviceGetP2PStatus", other, |_, other| {
            let linked = index == P2P_BY_NVLINK && one.linked(other);
            unsafe { put(status, if linked { P2P_OK } else { P2P_NOT_SUPPORTED }) }
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetNvLinkState(
    device: Handle,
    link: c_uint,
    up: *mut c_uint,
) -> Code {
    card("nvmlDeviceGetNvLinkState", device, |_, card| match card.links.get(link as usize) {
        _ if card.links.is_empty() => NOT_SUPPORTED,
        Some(link) => unsafe { put(up, c_uint::from(link.up)) },
        None => INVALID_ARGUMENT,
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetNvLinkRemotePciInfo_v2(
    device: Handle,
    link: c_uint,
    pci: *mut PciInfo,
) -> Code {
    card("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, |_, card| {
        match card.links.get(link as usize) {
            Some(link) if link.up => unsafe { put(pci, PciInfo::new(&link.pci)) },
            _ => INVALID_ARGUMENT,
        }
    })
}
