//! What a policy may use. Every figure is a ceiling, not a reservation.

use std::time::Duration;

/// Limits of one policy. The defaults suit guests in every SDK language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Processor time of one decision call, lowering and lifting included. A
    /// guest that loops is stopped within this and a few milliseconds; what the
    /// machine kept its thread waiting does not count, up to ten seconds.
    pub call: Duration,
    /// The same of `describe` and of `configure`, once an instance.
    pub setup: Duration,
    /// The same of `prepare`, off the round.
    pub prepare: Duration,
    /// Linear memory of one instance in bytes, all its memories together.
    pub memory_bytes: usize,
    /// Bytes of linear memory above which an instance is retired after a call.
    pub memory_high_water: usize,
    /// Table elements of one instance, all its tables together.
    pub table_elements: usize,
    /// Bytes that the guest may hand to the host in one crossing, over and
    /// above what the rows of an answer need.
    pub host_bytes: usize,
    /// Bytes of log text kept of one call; the rest is dropped and counted.
    pub log_bytes: usize,
    /// Log lines kept of one call.
    pub log_lines: usize,
    /// Texts that a configured policy may add to the host's strings.
    pub new_strings: usize,
    /// Bytes of what `prepare` makes.
    pub prepared_bytes: usize,
    /// Instances alive at once, one a thread that decides.
    pub instances: usize,
    /// Calls after which an instance is retired; 1 means a fresh instance for
    /// every call.
    pub calls_per_instance: u64,
    /// Bytes of a component.
    pub component_bytes: usize,
    /// Processor time of compiling it, in whole seconds and at least one, all
    /// threads together; the wall time may be four times this. A guest with
    /// Python inside takes 16 s.
    pub compile_time: Duration,
    /// Address space of the compiling process in bytes. A guest with Python
    /// inside makes 0.3 GiB of it resident.
    pub compile_memory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call: Duration::from_millis(50),
            setup: Duration::from_secs(2),
            prepare: Duration::from_secs(20),
            memory_bytes: 64 << 20,
            memory_high_water: 48 << 20,
            table_elements: 20_000,
            host_bytes: 2 << 20,
            log_bytes: 16 << 10,
            log_lines: 100,
            new_strings: 10_000,
            prepared_bytes: 2 << 20,
            instances: 64,
            calls_per_instance: 100_000,
            component_bytes: 32 << 20,
            compile_time: Duration::from_mins(1),
            compile_memory_bytes: 2 << 30,
        }
    }
}
