//! The macro that makes a policy of a type.

/// Makes a policy of a type: its manifest, `native()`, and, built for
/// WebAssembly, the component's exports.
///
/// ```text
/// crater_sdk::export!(Tight {
///     name: "tight",                            // required
///     exports: [score, filter],                 // required: the decisions it makes, of
///                                               // prepare filter score score_groups preempt rank admit
///     wants: [NODE_GPU_FREE, JOB_CPU],          // columns and facts; others read as absent
///     labels: ["rack"],                         // node labels, see Node::label
///     reasons: [(1, "too far from the data")],  // texts of the filter's codes
///     schema: include_str!("schema.json"),      // of its configuration
///     time_step: 600, rank_step: 60, normalise: true, whole_table: true,
///     group_by: Manifest::BY_DOMAIN,            // see Manifest for these
///     version: "2.1",                           // else the package's
/// });
/// ```
///
/// Each setting is a method of [`Manifest`](crate::Manifest). Exports go into
/// the final link only for `wasm32`, so many policies can be linked natively.
#[macro_export]
macro_rules! export {
    ($policy:ident { $($settings:tt)* }) => {
        $crate::__export_settings!([$policy] [] [] $($settings)* ,);
    };
}

/// Sorts the settings of [`export!`]: `[type] [manifest calls] [exports]`, then
/// what is left.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_settings {
    ([$policy:ident] [$($calls:tt)*] [$($exports:ident)*] $(,)?) => {
        /// What this policy says of itself.
        pub const MANIFEST: $crate::Manifest = $crate::Manifest::new(
            ::core::env!("CARGO_PKG_VERSION"),
            &[$($crate::__export_interface!($exports)),*],
        )
        $($calls)*;

        /// This policy as an ordinary library.
        #[must_use]
        pub const fn native() -> $crate::native::Guest {
            $crate::native::Guest::of::<$policy>(MANIFEST)
        }

        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, missing_docs)]
        const _: () = {
            struct Component;

            impl $crate::wasm::Hosted for Component {
                type Policy = $policy;
                const MANIFEST: $crate::Manifest = MANIFEST;
                fn slot() -> &'static $crate::wasm::Slot<$policy> {
                    static SLOT: $crate::wasm::Slot<$policy> = $crate::wasm::Slot::new();
                    &SLOT
                }
            }

            $crate::wasm::base::__crater_base!(Component with_types_in $crate::wasm::base);
            $($crate::__export_world!($exports Component);)*
        };
    };
    ([$policy:ident] [$($calls:tt)*] [] exports: [$($export:ident),* $(,)?], $($rest:tt)*) => {
        $crate::__export_settings!([$policy] [$($calls)*] [$($export)*] $($rest)*);
    };
    ([$policy:ident] [$($calls:tt)*] [$($e:ident)*] $key:ident: [$($value:expr),* $(,)?], $($rest:tt)*) => {
        $crate::__export_settings!([$policy] [$($calls)* .$key(&[$($value),*])] [$($e)*] $($rest)*);
    };
    ([$policy:ident] [$($calls:tt)*] [$($e:ident)*] $key:ident: $value:expr, $($rest:tt)*) => {
        $crate::__export_settings!([$policy] [$($calls)* .$key($value)] [$($e)*] $($rest)*);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_interface {
    (prepare) => {
        $crate::Interface::Prepare
    };
    (filter) => {
        $crate::Interface::Filter
    };
    (score) => {
        $crate::Interface::Score
    };
    (score_groups) => {
        $crate::Interface::ScoreGroups
    };
    (preempt) => {
        $crate::Interface::Preempt
    };
    (rank) => {
        $crate::Interface::Rank
    };
    (admit) => {
        $crate::Interface::Admit
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_world {
    (prepare $of:ident) => { $crate::wasm::prepare::__crater_prepare!($of with_types_in $crate::wasm::prepare); };
    (filter $of:ident) => { $crate::wasm::filter::__crater_filter!($of with_types_in $crate::wasm::filter); };
    (score $of:ident) => { $crate::wasm::score::__crater_score!($of with_types_in $crate::wasm::score); };
    (score_groups $of:ident) => { $crate::wasm::score_groups::__crater_score_groups!($of with_types_in $crate::wasm::score_groups); };
    (preempt $of:ident) => { $crate::wasm::preempt::__crater_preempt!($of with_types_in $crate::wasm::preempt); };
    (rank $of:ident) => { $crate::wasm::rank::__crater_rank!($of with_types_in $crate::wasm::rank); };
    (admit $of:ident) => { $crate::wasm::admit::__crater_admit!($of with_types_in $crate::wasm::admit); };
}
