//! The answers of a scripted policy: hashes of exactly what it is shown, so
//! that an answer kept too long, or of the wrong row, shows.

use super::script::{GroupScore, Masks, Prices, Rank, Score, Script};
use crater_engine::mix;
use crater_engine::policy::{Column, Scores, Table, Values};
use crater_model::columns::{self as c, Shape};

/// A number below 100 that follows from a salt and a hash.
pub fn percent(salt: u64, of: u64) -> u8 {
    (mix(salt ^ mix(of)) % 100) as u8
}

fn fold(hash: u64, values: &[i32]) -> u64 {
    values.iter().fold(mix(hash ^ values.len() as u64), |h, v| mix(h ^ u64::from(*v as u32)))
}

fn fold_all(hash: u64, values: &Values) -> u64 {
    values.iter().fold(hash, |h, column| fold(mix(h ^ u64::from(column.id)), &column.values))
}

/// A hash of the script and of all that it sees of a job and the moment.
pub fn of_job(script: &Script, context: &Values, job: &Values) -> u64 {
    fold_all(fold_all(mix(script.salt), context), job)
}

/// The values of one column that belong to row i.
fn of_row<'a>(table: &'a Table, column: &'a Column, i: usize) -> &'a [i32] {
    let info = c::info(column.id);
    match info.map(|info| (info.shape, info.offsets)) {
        Some((Shape::Offsets, _)) => &[],
        Some((_, Some(offsets))) => {
            let bound = |at: usize| {
                let offsets = table.column(offsets).and_then(|o| o.get(at)).copied();
                offsets.map_or(0, |o| o as usize).min(column.values.len())
            };
            &column.values[bound(i)..bound(i + 1).max(bound(i))]
        }
        _ => column.values.get(i..=i).unwrap_or_default(),
    }
}

fn row(hash: u64, table: &Table, i: usize) -> u64 {
    let columns = table.columns.iter();
    columns.fold(hash, |h, column| fold(mix(h ^ u64::from(column.id)), of_row(table, column, i)))
}

/// Whether one of so many rows of a hundred is in the table.
pub fn any_row(salt: u64, of: u64, table: &Table, rows: u8) -> bool {
    (0..table.rows as usize).any(|i| percent(salt, row(of, table, i)) < rows)
}

/// A hash of each row; with `whole`, of all rows besides.
fn rows<'a>(script: &Script, of: u64, table: &'a Table) -> impl Iterator<Item = u64> + 'a {
    let n = table.rows as usize;
    let beside = if script.whole { (0..n).fold(of, |h, i| row(h, table, i)) } else { of };
    (0..n).map(move |i| row(beside, table, i))
}

/// Codes of a filter.
pub fn codes(script: &Script, of: u64, nodes: &Table) -> Vec<i32> {
    let refused = script.filter.unwrap_or(0);
    let (deferred, secs) = script.defer.unwrap_or((0, 0));
    let code = |hash| match percent(script.salt ^ 0xf1, hash) {
        p if p < refused => 1,
        p if p < refused.saturating_add(deferred) => i32::try_from(secs).map_or(i32::MIN, |s| -s),
        _ => 0,
    };
    rows(script, of, nodes).map(code).collect()
}

/// Scores, and cards where the script chooses them.
pub fn scores(script: &Script, of: u64, job: &Values, nodes: &Table) -> Scores {
    let hashes: Vec<u64> = rows(script, of, nodes).collect();
    let score = |(i, hash): (usize, &u64)| match script.score {
        Some(Score::Hash(below)) => (mix(hash ^ 0x5c) % below) as i32,
        Some(Score::Column(id, sign)) => {
            nodes.column(id).and_then(|c| c.get(i)).map_or(0, |v| v.saturating_mul(sign))
        }
        None => 0,
    };
    let cards = match script.masks {
        None => vec![],
        Some(Masks::Wild) => hashes.iter().map(|h| (mix(h ^ 0x3a) & 0xff) as i32).collect(),
        Some(Masks::Fitting) => {
            hashes.iter().enumerate().map(|(i, h)| fitting(job, nodes, i, *h) as i32).collect()
        }
    };
    Scores { scores: hashes.iter().enumerate().map(score).collect(), cards }
}

/// Cards with room, picked by a hash; 0 where that cannot be told from the
/// columns, or one time in four.
fn fitting(job: &Values, nodes: &Table, i: usize, hash: u64) -> u32 {
    let list = |id| job.iter().find(|c| c.id == id).map_or(&[][..], |c| c.values.as_slice());
    let one = |id| list(id).first().copied().unwrap_or(0);
    let required = 2;
    if one(c::JOB_MIG_PROFILE) != 0
        || one(c::JOB_NVLINK) == required
        || one(c::JOB_NUMA) == required
        || hash.is_multiple_of(4)
    {
        return 0;
    }
    let of =
        |id| nodes.columns.iter().find(|c| c.id == id).map_or(&[][..], |c| of_row(nodes, c, i));
    let (free, memory_free) = (of(c::CARD_FREE), of(c::CARD_MEMORY_FREE));
    let (total, models) = (of(c::CARD_MEMORY_TOTAL), of(c::CARD_MODEL));
    let (healthy, cut) = (of(c::CARD_HEALTHY), of(c::CARD_MIG));
    let fits = |card: usize| {
        let whole = i64::from(total[card]);
        let milli = i64::from(one(c::JOB_CARD_MILLI));
        let (milli, memory) = match (one(c::JOB_WHOLE_CARDS), i64::from(one(c::JOB_CARD_MIB))) {
            (1, _) => (1000, whole),
            (_, 0) => (milli, whole * milli / 1000),
            (_, mib) if milli == 0 => ((mib * 1000 + whole - 1) / whole.max(1), mib),
            (_, mib) => (milli, mib),
        };
        let allowed = list(c::JOB_MODELS);
        healthy[card] == 1
            && cut[card] == 0
            && (allowed.is_empty() || allowed.contains(&models[card]))
            && milli.max(1) <= i64::from(free[card])
            && memory <= i64::from(memory_free[card])
    };
    let n = free.len().min(31);
    let start = if n == 0 { 0 } else { mix(hash) as usize % n };
    let wanted = usize::try_from(one(c::JOB_CARDS)).unwrap_or(0);
    let cards: Vec<usize> =
        (0..n).map(|k| (start + k) % n).filter(|card| fits(*card)).take(wanted).collect();
    if cards.len() < wanted { 0 } else { cards.iter().fold(0, |mask, card| mask | 1 << card) }
}

/// What groups add.
pub fn groups(script: &Script, of: u64, groups: &Table) -> Vec<i32> {
    let n = groups.rows as usize;
    match script.groups {
        Some(GroupScore::Hash(below)) => {
            (0..n).map(|i| (row(of ^ 0x64, groups, i) % below) as i32).collect()
        }
        Some(GroupScore::Mean) => {
            let idle = groups.column(c::GROUP_CARDS_IDLE).unwrap_or_default();
            let mean = idle.iter().sum::<i32>() / i32::try_from(n.max(1)).unwrap_or(i32::MAX);
            idle.iter().map(|own| own - mean).collect()
        }
        None => vec![0; n],
    }
}

/// (tier, cost) of each unit of eviction.
pub fn prices(script: &Script, of: u64, units: &Table) -> Vec<(i32, i32)> {
    const ODD: [i32; 5] = [i32::MIN, i32::MIN + 1, 0, i32::MAX - 1, i32::MAX];
    let price = |i| {
        let hash = row(of ^ 0x9e, units, i);
        let part = |salt: u64, below: u64| mix(hash ^ salt) % below;
        let odd = |salt| ODD[part(salt, ODD.len() as u64) as usize];
        match script.prices {
            Some(Prices::Hash(tiers, costs)) => (part(1, tiers) as i32, part(2, costs) as i32),
            Some(Prices::Extreme) => (odd(1), odd(2)),
            // The contract's word for a unit that is not to go.
            Some(Prices::Spare(spared)) if percent(script.salt ^ 0x5e, hash) < spared => {
                (i32::MAX, 0)
            }
            None | Some(Prices::Equal | Prices::Spare(_)) => (0, 0),
        }
    };
    (0..units.rows as usize).map(price).collect()
}

/// (tier, class, weight) of each job.
pub fn ranks(script: &Script, of: u64, jobs: &Table) -> Vec<(i32, i32, i32)> {
    let value = |id, i: usize| jobs.column(id).and_then(|c| c.get(i)).copied().unwrap_or(0);
    let rank = |i| match script.rank {
        Some(Rank::Hash(tiers, classes)) => {
            let hash = row(of ^ 0x7a, jobs, i);
            let part = |salt: u64, below: u64| (mix(hash ^ salt) % below) as i32;
            (part(1, tiers), part(2, classes), part(3, 100))
        }
        Some(Rank::Column(weight, sign, class)) => {
            (0, class.map_or(0, |id| value(id, i)), value(weight, i).saturating_mul(sign))
        }
        None => (0, 0, 0),
    };
    (0..jobs.rows as usize).map(rank).collect()
}
