//! The room that a node keeps for jobs of several whole cards.
//!
//! M = Σ over such shapes of worth · cards · min(⌊idle / cards⌋, ⌊C / cpu⌋):
//! for each number of idle cards a staircase over free CPU, made beforehand.

use crate::mix::Several;

/// M of nodes with one card model.
#[derive(Clone, Debug, Default)]
pub struct Room {
    /// By idle cards: CPU at which M rises, ascending, and M from there on.
    stairs: Vec<Vec<(i32, f64)>>,
}

/// More cards than this on a node count as this many.
const MOST: i32 = 64;

impl Room {
    /// For the shapes that may use a model.
    pub fn new(several: &[Several], model: &str) -> Self {
        let may = |s: &&Several| s.models.is_empty() || s.models.iter().any(|m| m == model);
        let shapes: Vec<&Several> = several.iter().filter(may).collect();
        let most = shapes.iter().map(|s| s.cards).max().unwrap_or(0);
        // A node with more idle cards than the largest shape may hold several.
        let most = if most == 0 { 0 } else { MOST.max(most) };
        Self { stairs: (0..=most).map(|idle| stairs(&shapes, idle)).collect() }
    }

    /// M with so many idle cards and so much free CPU, in cards.
    #[inline]
    pub fn of(&self, idle: usize, cpu: i32) -> f64 {
        let Some(stairs) = self.stairs.get(idle).or(self.stairs.last()) else { return 0.0 };
        let passed = stairs.partition_point(|(at, _)| *at <= cpu);
        passed.checked_sub(1).and_then(|at| stairs.get(at)).map_or(0.0, |(_, sum)| *sum)
    }
}

fn stairs(shapes: &[&Several], idle: i32) -> Vec<(i32, f64)> {
    let mut rises: Vec<(i32, f64)> = Vec::new();
    for shape in shapes {
        let gain = f64::from(shape.worth) * f64::from(shape.cards) / 1e6;
        let rise = |times: i32| (shape.cpu.max(0).saturating_mul(times), gain);
        rises.extend((1..=idle / shape.cards).map(rise));
    }
    rises.sort_unstable_by_key(|(cpu, _)| *cpu);
    let mut stairs: Vec<(i32, f64)> = Vec::new();
    let mut sum = 0.0;
    for (cpu, gain) in rises {
        sum += gain;
        match stairs.last_mut() {
            Some(last) if last.0 == cpu => last.1 = sum,
            _ => stairs.push((cpu, sum)),
        }
    }
    stairs
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact figures")]
mod tests {
    use super::*;

    #[test]
    fn room_is_bounded_by_cards_and_by_cores() {
        let shape = |cards, cpu| Several { worth: 500_000, cards, cpu, models: vec![] };
        let room = Room::new(&[shape(2, 10_000), shape(8, 64_000)], "T4");
        assert_eq!((room.of(1, 96_000), room.of(2, 9_999), room.of(2, 10_000)), (0.0, 0.0, 1.0));
        // Four pairs and one of eight; then only three pairs have their cores.
        assert_eq!((room.of(8, 96_000), room.of(8, 39_999)), (8.0, 3.0));
        assert_eq!(room.of(500, i32::MAX), room.of(64, i32::MAX));
        assert_eq!(Room::default().of(8, 96_000), 0.0);
    }

    #[test]
    fn a_bound_shape_counts_on_its_models_only() {
        let shape = Several { worth: 1_000_000, cards: 2, cpu: 0, models: vec!["A100".into()] };
        assert_eq!(Room::new(std::slice::from_ref(&shape), "T4").of(8, 0), 0.0);
        assert_eq!(Room::new(&[shape], "A100").of(8, 0), 8.0);
    }
}
