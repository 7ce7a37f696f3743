//! What every function does: its state, its failures, and writing through the
//! pointers that it was given.

#![expect(unsafe_code, reason = "a C interface answers through pointers")]

use crate::{Card, Machine};
use std::ffi::{c_char, c_uint, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a function returns.
pub type Code = c_uint;
/// A card: its index and one, so that no card is a null pointer.
pub type Handle = *mut c_void;

pub const SUCCESS: Code = 0;
pub const UNINITIALIZED: Code = 1;
pub const INVALID_ARGUMENT: Code = 2;
pub const NOT_SUPPORTED: Code = 3;
pub const NOT_FOUND: Code = 6;
pub const INSUFFICIENT_SIZE: Code = 7;
pub const DRIVER_NOT_LOADED: Code = 9;
pub const VERSION_MISMATCH: Code = 25;

/// How many times it was initialised and not shut down.
static USERS: AtomicUsize = AtomicUsize::new(0);

/// Counts one more user, unless the description has the driver fail.
pub fn start(function: &str) -> Code {
    let Some(machine) = read() else { return DRIVER_NOT_LOADED };
    if let Some(code) = machine.fail.get(function) {
        return *code;
    }
    USERS.fetch_add(1, Ordering::SeqCst);
    SUCCESS
}

/// Counts one user less.
pub fn stop() -> Code {
    let less = |users: usize| users.checked_sub(1);
    let before = USERS.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    if before.is_ok() { SUCCESS } else { UNINITIALIZED }
}

/// Answers for the machine.
pub fn system(function: &str, answer: impl FnOnce(&Machine) -> Code) -> Code {
    if USERS.load(Ordering::SeqCst) == 0 {
        return UNINITIALIZED;
    }
    let Some(machine) = read() else { return DRIVER_NOT_LOADED };
    machine.fail.get(function).copied().unwrap_or_else(|| answer(&machine))
}

/// Answers for a card.
pub fn card(function: &str, handle: Handle, answer: impl FnOnce(&Machine, &Card) -> Code) -> Code {
    system(function, |machine| {
        let card = (handle as usize).checked_sub(1).and_then(|index| machine.cards.get(index));
        let Some(card) = card else { return INVALID_ARGUMENT };
        card.fail.get(function).copied().unwrap_or_else(|| answer(machine, card))
    })
}

/// The handle of a card by index.
pub fn handle(index: usize) -> Handle {
    std::ptr::without_provenance_mut(index + 1)
}

/// Writes an answer.
///
/// # Safety
///
/// `at` is null or may be written to.
pub unsafe fn put<T>(at: *mut T, value: T) -> Code {
    if at.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: it is not null, and the caller's to write to.
    unsafe { at.write(value) };
    SUCCESS
}

/// Writes a text and the zero that ends it.
///
/// # Safety
///
/// `at` is null or `length` bytes may be written to there.
pub unsafe fn put_text(at: *mut c_char, length: c_uint, text: &str) -> Code {
    if at.is_null() || text.contains('\0') {
        return INVALID_ARGUMENT;
    }
    if text.len() >= length as usize {
        return INSUFFICIENT_SIZE;
    }
    // SAFETY: there is room for the text and one more.
    unsafe {
        at.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        at.add(text.len()).write(0);
    }
    SUCCESS
}

/// Text in a field of its own, cut to what fits.
pub fn field<const N: usize>(text: &str) -> [c_char; N] {
    let mut field = [0; N];
    for (to, from) in field[..N - 1].iter_mut().zip(text.bytes()) {
        *to = c_char::from_ne_bytes([from]);
    }
    field
}

/// The description. One that cannot be read is a driver that is not there.
fn read() -> Option<Machine> {
    let named = std::env::var_os("CRATER_NVML_MACHINE").map(PathBuf::from);
    let file = named.or_else(|| Some(own_path()?.with_file_name("machine.json")))?;
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

/// The path from which this library was loaded: that of the mapping which
/// holds one of its functions.
fn own_path() -> Option<PathBuf> {
    let own = own_path as *const () as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let hex = |text| usize::from_str_radix(text, 16).ok();
        range.is_some_and(|(from, to)| {
            hex(from).is_some_and(|from| from <= own) && hex(to).is_some_and(|to| own < to)
        })
    })?;
    Some(PathBuf::from(&line[line.find('/')?..]))
}
