//! MIG: where instances may lie on a card. Placement, not counting.
//!
//! Positions are memory slices 0–7. The tables are those of NVIDIA's MIG user
//! guide ("Supported MIG profiles") and of the go-nvml mock of these cards;
//! sizes vary with the driver, so a node's own report wins where there is one.

use crate::amount::Mib;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One profile of a geometry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Profile {
    /// NVIDIA's name, such as `1g.10gb`.
    pub name: Arc<str>,
    /// Compute slices of the seven.
    pub compute: u8,
    /// Memory slices of the eight.
    pub width: u8,
    /// Where it may start.
    pub starts: Vec<u8>,
    /// Most instances of it on one card.
    pub max: u8,
    /// Memory of an instance.
    pub memory: Mib,
}

/// The profiles of one card model.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Geometry {
    /// All profiles, small to large.
    pub profiles: Vec<Profile>,
}

/// An instance on a card.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Instance {
    /// Profile name.
    pub profile: Arc<str>,
    /// First memory slice.
    pub start: u8,
}

/// (name for A100-40GB, compute, width, starts, max, and MiB on A100-40GB)
type Row = (&'static str, u8, u8, &'static [u8], u8, u64);

const A100_40: [Row; 7] = [
    ("1g.5gb", 1, 1, &[0, 1, 2, 3, 4, 5, 6], 7, 4864),
    ("1g.5gb.me", 1, 1, &[0, 1, 2, 3, 4, 5, 6], 1, 4864),
    ("1g.10gb", 1, 2, &[0, 2, 4, 6], 4, 9856),
    ("2g.10gb", 2, 2, &[0, 2, 4], 3, 9856),
    ("3g.20gb", 3, 4, &[0, 4], 2, 19968),
    ("4g.20gb", 4, 4, &[0], 1, 19968),
    ("7g.40gb", 7, 8, &[0], 1, 40192),
];

const NAMES_80: [&str; 7] =
    ["1g.10gb", "1g.10gb.me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"];
const MIB_80: [u64; 7] = [9856, 9856, 19968, 19968, 40192, 40192, 80384];
const NAMES_H200: [&str; 7] =
    ["1g.18gb", "1g.18gb.me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"];
const MIB_H200: [u64; 7] = [16384, 16384, 33280, 33280, 71680, 71680, 143_360];

impl Geometry {
    /// The table of a card model, by the names that NVML and node labels use;
    /// `None` for cards without MIG.
    pub fn of_model(model: &str) -> Option<Self> {
        let model = model.to_ascii_uppercase();
        if model.contains("H200") {
            return Some(Self::named(NAMES_H200, MIB_H200));
        }
        if model.contains("H100") || (model.contains("A100") && model.contains("80")) {
            return Some(Self::named(NAMES_80, MIB_80));
        }
        model.contains("A100").then(|| Self::named(A100_40.map(|r| r.0), A100_40.map(|r| r.5)))
    }

    fn named(names: [&str; 7], mib: [u64; 7]) -> Self {
        let profiles = A100_40
            .iter()
            .zip(names.iter().zip(mib))
            .map(|((_, compute, width, starts, max, _), (name, mib))| Profile {
                name: (*name).into(),
                compute: *compute,
                width: *width,
                starts: starts.to_vec(),
                max: *max,
                memory: Mib(mib),
            })
            .collect();
        Self { profiles }
    }

    /// A profile by name.
    pub fn profile(&self, name: &str) -> Option<&Profile> {
        self.profiles.iter().find(|p| &*p.name == name)
    }

    /// The memory slices that `instance` covers, as bits; 0 if it is not of
    /// this geometry.
    pub fn bits(&self, instance: &Instance) -> u8 {
        self.profile(&instance.profile).map_or(0, |p| span(instance.start, p.width))
    }

    /// Where a new instance of `profile` would go beside `present`: the legal
    /// start that leaves the most of the larger profiles possible, the highest
    /// such, so that small ones gather at the end. `None` if it does not fit.
    pub fn place(&self, profile: &str, present: &[Instance]) -> Option<Instance> {
        let wanted = self.profile(profile)?;
        if !self.room(wanted, present) {
            return None;
        }
        let taken = present.iter().fold(0, |bits, i| bits | self.bits(i));
        let fits = |start: u8| span(start, wanted.width) & taken == 0;
        let left = |start: u8| {
            let taken = taken | span(start, wanted.width);
            // Larger first: the first differing profile decides.
            let open = self
                .profiles
                .iter()
                .rev()
                .map(|p| p.starts.iter().filter(|s| span(**s, p.width) & taken == 0).count());
            open.collect::<Vec<_>>()
        };
        let start =
            wanted.starts.iter().copied().filter(|s| fits(*s)).max_by_key(|s| (left(*s), *s))?;
        Some(Instance { profile: wanted.name.clone(), start })
    }

    /// Whether `present` may stand together.
    pub fn legal(&self, present: &[Instance]) -> bool {
        let mut taken = 0u8;
        for (i, instance) in present.iter().enumerate() {
            let Some(profile) = self.profile(&instance.profile) else { return false };
            let bits = span(instance.start, profile.width);
            if !profile.starts.contains(&instance.start)
                || bits & taken != 0
                || !self.room(profile, &present[..i])
            {
                return false;
            }
            taken |= bits;
        }
        true
    }

    /// Whether compute slices and the profile's own maximum allow one more.
    fn room(&self, profile: &Profile, present: &[Instance]) -> bool {
        let compute: u32 = present
            .iter()
            .filter_map(|i| self.profile(&i.profile))
            .map(|p| u32::from(p.compute))
            .sum();
        let same = present.iter().filter(|i| i.profile == profile.name).count();
        compute + u32::from(profile.compute) <= 7 && same < usize::from(profile.max)
    }
}

/// Bits of `width` memory slices from `start`; 0 beyond the card.
const fn span(start: u8, width: u8) -> u8 {
    if start >= 8 || width == 0 || start + width > 8 {
        return 0;
    }
    (((1u16 << width) - 1) << start) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(profile: &str, start: u8) -> Instance {
        Instance { profile: profile.into(), start }
    }

    fn fill(model: &str, profiles: &[&str]) -> Vec<String> {
        let geometry = Geometry::of_model(model).unwrap();
        let mut present = vec![];
        for name in profiles {
            match geometry.place(name, &present) {
                Some(instance) => present.push(instance),
                None => return vec![format!("no room for {name} beside {present:?}")],
            }
            assert!(geometry.legal(&present));
        }
        present.iter().map(|i| format!("{}@{}", i.profile, i.start)).collect()
    }

    #[test]
    fn small_instances_keep_the_large_blocks_whole() {
        assert_eq!(
            fill("NVIDIA A100-SXM4-40GB", &["1g.5gb", "3g.20gb"]),
            ["1g.5gb@6", "3g.20gb@0"]
        );
        assert_eq!(
            fill("A100-40", &["2g.10gb", "2g.10gb", "2g.10gb", "1g.5gb"]),
            ["2g.10gb@4", "2g.10gb@2", "2g.10gb@0", "1g.5gb@6"]
        );
        assert_eq!(fill("NVIDIA H100 80GB HBM3", &["7g.80gb"]), ["7g.80gb@0"]);
        assert_eq!(fill("H100", &["1g.10gb"; 7]).len(), 7);
    }

    #[test]
    fn what_the_tables_forbid_does_not_fit() {
        let full = fill("A100-40", &["4g.20gb", "3g.20gb", "1g.5gb"]);
        assert!(full[0].starts_with("no room"), "{full:?}");
        let eighth = fill("A100-40", &["1g.5gb"; 8]);
        assert!(eighth[0].starts_with("no room"), "{eighth:?}");
        let geometry = Geometry::of_model("A100").unwrap();
        assert!(!geometry.legal(&[at("2g.10gb", 6)]), "2g never starts at 6");
        assert!(!geometry.legal(&[at("3g.20gb", 0), at("1g.5gb", 3)]), "they overlap");
        assert!(geometry.legal(&[at("3g.20gb", 0), at("3g.20gb", 4)]));
        assert!(Geometry::of_model("T4").is_none());
    }
}
