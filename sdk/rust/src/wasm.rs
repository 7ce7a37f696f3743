//! The component's exports: what the host calls, turned into [`Configured`]'s
//! calls. One small world an interface, so that a component exports exactly
//! those that its author listed in [`export!`](crate::export), which alone uses
//! this module.

#![allow(missing_docs, unsafe_code)]

use crate::native::Configured;
use crate::{Column, Facts, Manifest, Policy, Table};
use std::sync::{Mutex, PoisonError};
#[doc(hidden)]
pub use wit_bindgen;

macro_rules! world {
    ($module:ident, $world:literal, $export:literal, $path:literal) => {
        #[allow(clippy::all, clippy::pedantic, unused_qualifications)]
        pub mod $module {
            wit_bindgen::generate!({
                path: "../../wit",
                world: $world,
                pub_export_macro: true,
                export_macro_name: $export,
                default_bindings_module: $path,
                runtime_path: "crater_sdk::wasm::wit_bindgen::rt",
            });
        }
    };
}

world!(base, "base", "__crater_base", "crater_sdk::wasm::base");
world!(prepare, "with-prepare", "__crater_prepare", "crater_sdk::wasm::prepare");
world!(filter, "with-filter", "__crater_filter", "crater_sdk::wasm::filter");
world!(score, "with-score", "__crater_score", "crater_sdk::wasm::score");
world!(
    score_groups,
    "with-score-groups",
    "__crater_score_groups",
    "crater_sdk::wasm::score_groups"
);
world!(preempt, "with-preempt", "__crater_preempt", "crater_sdk::wasm::preempt");
world!(rank, "with-rank", "__crater_rank", "crater_sdk::wasm::rank");
world!(admit, "with-admit", "__crater_admit", "crater_sdk::wasm::admit");

/// A component's policy, once configured.
pub struct Slot<P>(Mutex<Option<P>>);

impl<P: Policy> Slot<P> {
    #[expect(clippy::new_without_default, reason = "made by the macro, in a static")]
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn set(&self, policy: P) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(policy);
    }

    /// The contract promises `configure` before any decision.
    fn with<R>(&self, ask: impl FnOnce(&P) -> R) -> R {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(policy) => ask(policy),
            None => core::arch::wasm32::unreachable(),
        }
    }
}

/// What the macro knows of a component.
pub trait Hosted {
    type Policy: Policy;
    const MANIFEST: Manifest;
    fn slot() -> &'static Slot<Self::Policy>;
}

type Values = Vec<(u32, Vec<i32>)>;

fn borrow(columns: &Values) -> Vec<Column<'_>> {
    columns.iter().map(|(id, values)| (*id, values.as_slice())).collect()
}

impl<H: Hosted> base::exports::crater::policy::policy::Guest for H {
    fn describe() -> base::exports::crater::policy::policy::Manifest {
        let m = H::MANIFEST;
        let mut wants = m.wants.to_vec();
        wants.sort_unstable();
        wants.dedup();
        base::exports::crater::policy::policy::Manifest {
            name: m.name.into(),
            version: m.version.into(),
            wants,
            labels: m.labels.iter().map(|&label| label.into()).collect(),
            options: m.options().to_vec(),
            reasons: m.reasons.iter().map(|&(code, text)| (code, text.into())).collect(),
            schema: m.schema.into(),
        }
    }

    fn configure(config: String, prepared: Vec<u8>) -> Result<(), String> {
        H::slot().set(H::Policy::configure(&config, &prepared)?);
        Ok(())
    }
}

impl<H: Hosted> prepare::exports::crater::policy::prepare::Guest for H {
    fn prepare(config: String, facts: Values) -> Result<Vec<u8>, String> {
        H::Policy::prepare(&config, &Facts::new(&borrow(&facts)))
    }
}

impl<H: Hosted> filter::exports::crater::policy::filter::Guest for H {
    fn filter(
        context: Values,
        job: Values,
        nodes: filter::exports::crater::policy::filter::Table,
    ) -> Vec<i32> {
        let nodes = Table { rows: nodes.rows, columns: &borrow(&nodes.columns) };
        H::slot().with(|p| Configured::filter(p, &borrow(&context), &borrow(&job), nodes))
    }
}

impl<H: Hosted> score::exports::crater::policy::score::Guest for H {
    fn score(
        context: Values,
        job: Values,
        nodes: score::exports::crater::policy::score::Table,
    ) -> score::exports::crater::policy::score::Scores {
        let nodes = Table { rows: nodes.rows, columns: &borrow(&nodes.columns) };
        let answer =
            H::slot().with(|p| Configured::score(p, &borrow(&context), &borrow(&job), nodes));
        score::exports::crater::policy::score::Scores { scores: answer.values, cards: answer.cards }
    }
}

impl<H: Hosted> score_groups::exports::crater::policy::score_groups::Guest for H {
    fn score_groups(
        context: Values,
        job: Values,
        groups: score_groups::exports::crater::policy::score_groups::Table,
    ) -> Vec<i32> {
        let groups = Table { rows: groups.rows, columns: &borrow(&groups.columns) };
        H::slot().with(|p| p.score_groups(&borrow(&context), &borrow(&job), groups))
    }
}

impl<H: Hosted> preempt::exports::crater::policy::preempt::Guest for H {
    fn price(
        context: Values,
        preemptor: Values,
        units: preempt::exports::crater::policy::preempt::Table,
    ) -> Vec<(i32, i32)> {
        let units = Table { rows: units.rows, columns: &borrow(&units.columns) };
        H::slot().with(|p| Configured::price(p, &borrow(&context), &borrow(&preemptor), units))
    }
}

impl<H: Hosted> rank::exports::crater::policy::rank::Guest for H {
    fn rank(
        context: Values,
        jobs: rank::exports::crater::policy::rank::Table,
    ) -> Vec<(i32, i32, i32)> {
        let jobs = Table { rows: jobs.rows, columns: &borrow(&jobs.columns) };
        H::slot().with(|p| Configured::rank(p, &borrow(&context), jobs))
    }
}

impl<H: Hosted> admit::exports::crater::policy::admit::Guest for H {
    fn admit(context: Values, job: Values) -> Result<Values, String> {
        H::slot().with(|p| Configured::admit(p, &borrow(&context), &borrow(&job)))
    }
}

pub(crate) fn string_id(text: &str) -> i32 {
    base::crater::policy::strings::id(text)
}

pub(crate) fn string_text(id: i32) -> String {
    base::crater::policy::strings::text(id)
}

pub(crate) fn log(level: i32, text: &str) {
    base::crater::policy::log::log(level, text);
}
