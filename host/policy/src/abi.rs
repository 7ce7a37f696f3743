//! The contract's types at the boundary. Columns go in as borrowed slices: one
//! copy, into the guest's memory.

use crater_engine::policy::Column;
use wasmtime::component::{ComponentType, Lift, Lower};

/// `values`: one thing's columns.
pub(crate) type ValuesIn<'a> = &'a [(u32, &'a [i32])];

/// `values` in an answer.
pub(crate) type ValuesOut = Vec<(u32, Vec<i32>)>;

/// `table`: many things, one row each.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct TableIn<'a> {
    pub(crate) rows: u32,
    pub(crate) columns: ValuesIn<'a>,
}

/// `manifest`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct ManifestOut {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) wants: Vec<u32>,
    pub(crate) labels: Vec<String>,
    pub(crate) options: Vec<(u32, i32)>,
    pub(crate) reasons: Vec<(i32, String)>,
    pub(crate) schema: String,
}

/// `scores`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct ScoresOut {
    pub(crate) scores: Vec<i32>,
    pub(crate) cards: Vec<i32>,
}

/// The engine's columns as they are lowered.
pub(crate) fn lowered(columns: &[Column]) -> Vec<(u32, &[i32])> {
    columns.iter().map(|c| (c.id, c.values.as_slice())).collect()
}

/// Parameters and answer of each function, named once: the check at loading
/// and the call must mean the same.
pub(crate) mod sig {
    use super::{ManifestOut, ScoresOut, TableIn, ValuesIn, ValuesOut};

    pub(crate) type Describe = ();
    pub(crate) type DescribeOut = (ManifestOut,);
    pub(crate) type Configure<'a> = (&'a str, &'a [u8]);
    pub(crate) type ConfigureOut = (Result<(), String>,);
    pub(crate) type Prepare<'a> = (&'a str, ValuesIn<'a>);
    pub(crate) type PrepareOut = (Result<Vec<u8>, String>,);
    pub(crate) type OnTable<'a> = (ValuesIn<'a>, ValuesIn<'a>, TableIn<'a>);
    pub(crate) type FilterOut = (Vec<i32>,);
    pub(crate) type ScoreOut = (ScoresOut,);
    pub(crate) type PriceOut = (Vec<(i32, i32)>,);
    pub(crate) type Rank<'a> = (ValuesIn<'a>, TableIn<'a>);
    pub(crate) type RankOut = (Vec<(i32, i32, i32)>,);
    pub(crate) type Admit<'a> = (ValuesIn<'a>, ValuesIn<'a>);
    pub(crate) type AdmitOut = (Result<ValuesOut, String>,);
}
