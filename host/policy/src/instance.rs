//! One instance of a component, and the way into it.

use crate::contract::{Call, Exports};
use crate::deadline::Deadline;
use crate::fault::Failure;
use crate::host::{Shared, State};
use crate::limits::Limits;
use crate::ticker::{self, Running, Ticker};
use std::time::Duration;
use wasmtime::component::{ComponentNamedList, Func, InstancePre, Lift, Lower};
use wasmtime::{Engine, Store, StoreContextMut, UpdateDeadline};

/// What ends calls, one for the whole runtime.
#[derive(Debug)]
pub(crate) enum Clock {
    Wall(Ticker),
    /// Fuel for a call of [`Limits::call`]; other limits in proportion.
    Fuel(u64),
}

impl Clock {
    /// Gives a store its time. It runs while the guard lives.
    fn arm(
        &self,
        store: &mut Store<State>,
        limit: Duration,
        limits: &Limits,
    ) -> Option<Running<'_>> {
        match self {
            Self::Wall(ticker) => {
                let running = ticker.run();
                store.data_mut().deadline = Deadline::begin(limit);
                store.set_epoch_deadline(ticker::ticks(limit));
                Some(running)
            }
            Self::Fuel(per_call) => {
                let share =
                    limit.as_nanos() * u128::from(*per_call) / limits.call.as_nanos().max(1);
                let fuel = u64::try_from(share).unwrap_or(u64::MAX);
                // Fails only if the engine were built without fuel.
                store.set_fuel(fuel).expect("a metered engine has fuel");
                None
            }
        }
    }
}

/// An instance in its own store. `&mut` is what keeps two threads from
/// entering it at once.
pub(crate) struct Instance {
    store: Store<State>,
    funcs: [Option<Func>; Call::ALL.len()],
    calls: u64,
    limits: Limits,
}

impl Instance {
    /// Instantiates; a start function runs under the limit of `describe`.
    pub(crate) fn start(
        engine: &Engine,
        pre: &InstancePre<State>,
        exports: &Exports,
        clock: &Clock,
        limits: Limits,
        shared: Shared,
    ) -> Result<Self, Failure> {
        let mut store = Store::new(engine, State::new(shared, &limits));
        store.limiter(|state| &mut state.limiter);
        store.epoch_deadline_callback(expired);
        store.set_max_component_handles(1000);
        store.set_hostcall_fuel(limits.host_bytes);
        store.data_mut().begin(Call::Describe, &limits);
        let _running = clock.arm(&mut store, limits.setup, &limits);
        let instance = match pre.instantiate(&mut store) {
            Ok(instance) => instance,
            Err(error) => return Err(failure(&store, &error, limits.setup)),
        };
        let funcs = Call::ALL.map(|call| instance.get_func(&mut store, exports.get(call)?));
        Ok(Self { store, funcs, calls: 0, limits })
    }

    /// Whether the component's function has the type of these parameters and
    /// answer. True for one that it does not export.
    pub(crate) fn fits<P, R>(&self, call: Call) -> bool
    where
        P: ComponentNamedList + Lower,
        R: ComponentNamedList + Lift,
    {
        self.funcs[call.index()].is_none_or(|f| f.typed::<P, R>(&self.store).is_ok())
    }

    /// Calls into the guest. `answer` is how many bytes a right answer has
    /// beyond what any call may hand over: one that is longer is refused
    /// before it is copied.
    ///
    /// After a failure the instance must not be used again.
    pub(crate) fn enter<P, R>(
        &mut self,
        clock: &Clock,
        call: Call,
        limit: Duration,
        answer: usize,
        params: P,
    ) -> Result<R, Failure>
    where
        P: ComponentNamedList + Lower,
        R: ComponentNamedList + Lift + 'static,
    {
        let func = self.funcs[call.index()]
            .ok_or_else(|| Failure::Answer(format!("the component does not export {call}")))?;
        self.calls += 1;
        self.store.data_mut().begin(call, &self.limits);
        self.store.set_hostcall_fuel(self.limits.host_bytes.saturating_add(answer));
        let _running = clock.arm(&mut self.store, limit, &self.limits);
        // The types were checked at loading; looking them up again costs about
        // a tenth of a microsecond and keeps borrowed parameters possible.
        func.typed::<P, R>(&self.store)
            .and_then(|f| f.call(&mut self.store, params))
            .map_err(|error| failure(&self.store, &error, limit))
    }

    /// Whether it has had enough calls or has grown too large.
    pub(crate) fn worn(&self) -> bool {
        self.calls >= self.limits.calls_per_instance
            || self.store.data().limiter.memory() > self.limits.memory_high_water
    }
}

/// The epoch that a call was given has come.
#[expect(clippy::unnecessary_wraps, reason = "the engine's signature")]
#[expect(clippy::needless_pass_by_value, reason = "the engine's signature")]
fn expired(store: StoreContextMut<'_, State>) -> wasmtime::Result<UpdateDeadline> {
    Ok(match store.data().deadline.missing() {
        Some(more) => UpdateDeadline::Continue(ticker::ticks(more)),
        None => UpdateDeadline::Interrupt,
    })
}

fn failure(store: &Store<State>, error: &wasmtime::Error, limit: Duration) -> Failure {
    let limiter = &store.data().limiter;
    Failure::of(error, limit, limiter.denied(), limiter.memory_limit())
}
