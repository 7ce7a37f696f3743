//! Memory and tables of one instance.

use wasmtime::ResourceLimiter;

/// Counts what a store's memories and tables hold together, and says no past
/// the limit. The guest sees an ordinary failure to grow; most give up then,
/// so the denial is noted for whoever names the fault.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory_limit: usize,
    table_limit: usize,
    memory: usize,
    tables: usize,
    last: usize,
    denied: bool,
}

impl Limiter {
    pub(crate) fn new(memory_limit: usize, table_limit: usize) -> Self {
        Self { memory_limit, table_limit, memory: 0, tables: 0, last: 0, denied: false }
    }

    /// Forgets denials of earlier calls.
    pub(crate) fn begin(&mut self) {
        self.denied = false;
    }

    /// Whether growth was denied in this call.
    pub(crate) fn denied(&self) -> bool {
        self.denied
    }

    /// Bytes of linear memory, all memories together.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// The limit on them.
    pub(crate) fn memory_limit(&self) -> usize {
        self.memory_limit
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        let fits = self.memory.saturating_add(more) <= self.memory_limit;
        self.denied |= !fits;
        self.last = if fits { more } else { 0 };
        self.memory += self.last;
        Ok(fits)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.memory -= std::mem::take(&mut self.last);
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        let fits = self.tables.saturating_add(more) <= self.table_limit;
        self.denied |= !fits;
        // A failed growth that was allowed stays counted: tables are small,
        // and the count errs on the side of the host.
        self.tables += if fits { more } else { 0 };
        Ok(fits)
    }

    // A component written in any SDK language has a handful of core instances.
    fn instances(&self) -> usize {
        100
    }

    fn tables(&self) -> usize {
        100
    }

    fn memories(&self) -> usize {
        20
    }
}
