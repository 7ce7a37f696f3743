//! The host's side of a store: the two interfaces that a policy may import.
//! Both are quick and never block, so a call ends when its guest is stopped.

use crate::contract::{Call, LOG, STRINGS};
use crate::deadline::Deadline;
use crate::limiter::Limiter;
use crate::limits::Limits;
use crate::logs::{LINE_BYTES, Level, Ring};
use crate::names::{Names, UNKNOWN};
use crater_engine::policy::Interface;
use std::sync::Arc;
use wasmtime::component::{Linker, WasmStr};
use wasmtime::{Engine, StoreContextMut};

/// What the instances of one configured policy have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    pub(crate) names: Arc<Names>,
    pub(crate) log: Arc<Ring>,
}

/// Data of one instance's store.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) limiter: Limiter,
    pub(crate) deadline: Deadline,
    shared: Shared,
    during: Call,
    log_bytes: usize,
    log_lines: usize,
}

impl State {
    pub(crate) fn new(shared: Shared, limits: &Limits) -> Self {
        let limiter = Limiter::new(limits.memory_bytes, limits.table_elements);
        Self {
            limiter,
            deadline: Deadline::begin(limits.setup),
            shared,
            during: Call::Describe,
            log_bytes: 0,
            log_lines: 0,
        }
    }

    /// Fills the meters for one call.
    pub(crate) fn begin(&mut self, during: Call, limits: &Limits) {
        self.limiter.begin();
        self.during = during;
        self.log_bytes = limits.log_bytes;
        self.log_lines = limits.log_lines;
    }

    /// Whether the guest may add strings: it is being set up for a queue.
    fn may_add(&self) -> bool {
        matches!(self.during, Call::Configure | Call::Decide(Interface::Prepare))
    }
}

/// A linker with `log` and `strings` and nothing else.
pub(crate) fn linker(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    linker.instance(LOG)?.func_wrap("log", log)?;
    let mut strings = linker.instance(STRINGS)?;
    strings.func_wrap("id", id)?;
    strings.func_wrap("text", text)?;
    Ok(linker)
}

fn log(
    mut store: StoreContextMut<'_, State>,
    (level, text): (i32, WasmStr),
) -> wasmtime::Result<()> {
    let state = store.data();
    if state.log_lines == 0 || state.log_bytes == 0 {
        state.shared.log.skip();
        return Ok(());
    }
    let bytes = {
        let text = text.to_str(&store)?;
        let room = state.log_bytes.min(LINE_BYTES);
        let kept = &text[..text.floor_char_boundary(room)];
        state.shared.log.push(state.during.function(), Level::of(level), kept);
        kept.len()
    };
    let state = store.data_mut();
    state.log_lines -= 1;
    // An empty line is not free.
    state.log_bytes = state.log_bytes.saturating_sub(bytes.max(1));
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "the engine's signature")]
fn id(store: StoreContextMut<'_, State>, (text,): (WasmStr,)) -> wasmtime::Result<(i32,)> {
    let state = store.data();
    let text = text.to_str(&store)?;
    Ok((state.shared.names.id(&text, state.may_add()),))
}

#[expect(clippy::needless_pass_by_value, reason = "the engine's signature")]
#[expect(clippy::unnecessary_wraps, reason = "the engine's signature")]
fn text(store: StoreContextMut<'_, State>, (id,): (i32,)) -> wasmtime::Result<(Arc<str>,)> {
    let text = if id == UNKNOWN { None } else { store.data().shared.names.text(id) };
    Ok((text.unwrap_or_else(|| Arc::from("")),))
}
