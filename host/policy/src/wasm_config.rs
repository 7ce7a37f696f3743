//! How guests are compiled and run. The compiling process and the running one
//! must agree on every line here, or the artefact is refused.

use wasmtime::{Config, Engine};

/// What ends a call that does not end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metering {
    /// Wall time, by epochs. What a service runs.
    Deadline,
    /// Instructions, by fuel: the same call ends at the same instruction on
    /// every machine. For tests.
    Fuel,
}

impl Metering {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Fuel => "fuel",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Deadline, Self::Fuel].into_iter().find(|m| m.name() == text)
    }
}

/// Stack of a guest in bytes. Threads that decide have at least 2 MiB.
const STACK_BYTES: usize = 512 << 10;

/// An engine for one way of metering.
pub(crate) fn engine(metering: Metering) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    match metering {
        Metering::Deadline => config.epoch_interruption(true),
        Metering::Fuel => config.consume_fuel(true),
    };
    config
        // The same answer on every machine.
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .relaxed_simd_deterministic(true)
        // Nothing that shares or suspends: one call, one thread, one instance.
        .shared_memory(false)
        .concurrency_support(false)
        .wasm_memory64(false)
        .max_wasm_stack(STACK_BYTES)
        // Names in the trap's backtrace are enough; no address maps.
        .generate_address_map(false)
        .native_unwind_info(false);
    // Instances are made on demand: each serves many calls, so what it costs
    // to make one (tens of microseconds, half of that from a pool) is nothing
    // to a call, and a pool's fixed number of places would be one more limit
    // that queues share.
    Engine::new(&config)
}
