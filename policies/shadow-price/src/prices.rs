//! What the free share of a card is worth to a mix, and what of it will be
//! wasted: two tables over shares in steps of ten thousandths of a card.
//!
//! *Prices*. `d_g` jobs ask for g of a card. The dual of the cutting-stock
//! problem (Gilmore and Gomory, 1961) gives each size a value `y_g` such that no
//! set of jobs that fits on a card is worth more than the card; the price U(f)
//! of a free share f is the best that fits in it. Instead of solving a linear
//! program, y comes from multiplicative weights (Plotkin, Shmoys and Tardos,
//! 1995): the sizes in the currently best set are worth a little less the more
//! of the demand that set covers.
//!
//! *Expected waste*. V(f) is what is left of f after forty jobs of the mix,
//! each of which takes its size if that makes the expected rest smaller.
//!
//! Only additions, products, quotients and roots: the tables are the same
//! natively and in WebAssembly.

/// Steps of a whole card.
pub const CELLS: usize = 100;
/// A table from nothing free to a whole card.
pub type Table = [f64; CELLS + 1];

/// What jobs ask of a card.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    /// Cards asked for by size in steps; whole cards of several-card jobs count
    /// at `CELLS`.
    pub cards: Vec<(usize, f64)>,
    /// How probable a job of one card is by size in steps.
    pub jobs: Vec<(usize, f64)>,
}

/// Enough for a value within a thousandth of the best; the step falls with the
/// root of the iteration over ten.
const ITERATIONS: u32 = 3000;
/// Enough from a similar demand's values, with the last, small steps.
const AGAIN: u32 = 600;
/// Least value of a size, so that it can rise again.
const LEAST: f64 = 1e-9;

/// Prices, and the values of the sizes that they come from.
#[derive(Clone, Debug)]
pub struct Prices {
    /// U: 0 for nothing, 1 for a whole card, never falling.
    pub table: Table,
    /// y by size in steps.
    worth: Vec<(usize, f64)>,
}

impl Demand {
    /// The prices. Those of a similar demand save most of the work.
    pub fn prices(&self, near: Option<&Prices>) -> Prices {
        let mut sizes: Vec<(usize, f64)> = self
            .cards
            .iter()
            .copied()
            .filter(|(g, d)| (1..=CELLS).contains(g) && *d > 0.0)
            .collect();
        if sizes.is_empty() {
            sizes.push((CELLS, 1.0));
        }
        sizes.sort_unstable_by_key(|(g, _)| *g);
        let known = |g: usize| near?.worth.iter().find(|(size, _)| *size == g).map(|(_, y)| *y);
        let start = |g: usize| known(g).unwrap_or(g as f64 / CELLS as f64).max(LEAST);
        let mut worth: Vec<f64> = sizes.iter().map(|(g, _)| start(*g)).collect();
        let mut best = (f64::NEG_INFINITY, worth.clone());
        let mut table = [0.0; CELLS + 1];
        let mut last = [0; CELLS + 1];
        let mut covered = vec![0.0; sizes.len()];
        for iteration in near.map_or(0, |_| ITERATIONS - AGAIN)..ITERATIONS {
            knapsack(&sizes, &worth, &mut table, &mut last);
            let scale = 1.0 / table[CELLS];
            let sum: f64 = sizes.iter().zip(&worth).map(|((_, d), y)| y * d).sum::<f64>() * scale;
            for y in &mut worth {
                *y *= scale;
            }
            if sum > best.0 {
                best.0 = sum;
                best.1.copy_from_slice(&worth);
            }
            // How often the best set has each size, by what is asked for.
            covered.fill(0.0);
            let mut left = CELLS;
            while left > 0 {
                let Some(at) = last[left].checked_sub(1) else {
                    left -= 1;
                    continue;
                };
                covered[at] += 1.0 / sizes[at].1;
                left -= sizes[at].0;
            }
            let most = covered.iter().fold(0.0, |a: f64, b| a.max(*b));
            let step = 0.5 / (1.0 + f64::from(iteration) / 10.0).sqrt();
            for (y, covered) in worth.iter_mut().zip(&covered).filter(|(_, c)| **c > 0.0) {
                *y = (*y * shrink(step * covered / most)).max(LEAST);
            }
        }
        knapsack(&sizes, &best.1, &mut table, &mut last);
        let whole = table[CELLS];
        let worth = sizes.iter().zip(&best.1).map(|((g, _), y)| (*g, y / whole)).collect();
        Prices { table: table.map(|value| value / whole), worth }
    }

    /// V: the expected rest of each free share.
    pub fn waste(&self) -> Table {
        let mut now: Table = std::array::from_fn(|f| f as f64 / CELLS as f64);
        for _ in 0..40 {
            let before = now;
            for (f, value) in now.iter_mut().enumerate() {
                for &(g, p) in self.jobs.iter().filter(|(g, _)| (1..=f).contains(g)) {
                    *value -= p * (before[f] - before[f - g]).max(0.0);
                }
            }
        }
        now
    }
}

/// For each amount the best sum of values that fits in it, and the size that
/// was added last, counted from 1; 0 if a step less is as good.
fn knapsack(
    sizes: &[(usize, f64)],
    worth: &[f64],
    table: &mut Table,
    last: &mut [usize; CELLS + 1],
) {
    for f in 1..=CELLS {
        let (mut best, mut choice) = (table[f - 1], 0);
        for (at, ((g, _), y)) in sizes.iter().zip(worth).enumerate() {
            if *g > f {
                break;
            }
            if table[f - g] + y > best {
                (best, choice) = (table[f - g] + y, at + 1);
            }
        }
        (table[f], last[f]) = (best, choice);
    }
}

/// e to the power of −h for h from 0 to ½, to five digits (Padé).
fn shrink(h: f64) -> f64 {
    let even = 12.0 + h * h;
    (even - 6.0 * h) / (even + 6.0 * h)
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact figures")]
mod tests {
    use super::*;

    fn demand(cards: &[(usize, f64)]) -> Demand {
        Demand { cards: cards.to_vec(), jobs: vec![] }
    }

    #[test]
    fn a_share_that_nobody_can_use_has_no_price() {
        let prices = demand(&[(50, 10.0), (CELLS, 10.0)]).prices(None).table;
        assert_eq!((prices[0], prices[49], prices[CELLS]), (0.0, 0.0, 1.0));
        assert!((prices[50] - 0.5).abs() < 1e-9, "{}", prices[50]);
    }

    #[test]
    fn a_share_that_pairs_badly_is_worth_less_than_its_size() {
        // 60 pairs with 40 only; of the two the one that is short is dear.
        let prices = demand(&[(60, 30.0), (40, 10.0)]).prices(None).table;
        assert!(prices[60] > 0.9 && prices[40] < 0.1, "{} {}", prices[60], prices[40]);
        let prices = demand(&[(60, 10.0), (40, 30.0)]).prices(None).table;
        assert!((prices[60] - 0.5).abs() < 0.02 && (prices[40] - 0.5).abs() < 0.02);
    }

    #[test]
    fn prices_never_fall_and_no_card_is_worth_more_than_one() {
        let mixes = [
            demand(&[(7, 3.0), (13, 50.0), (29, 8.0), (50, 20.0), (81, 5.0), (100, 90.0)]),
            demand(&[(1, 1.0)]),
            demand(&[]),
            demand(&[(100, 1.0), (0, 5.0), (101, 3.0)]),
        ];
        for mix in mixes {
            let prices = mix.prices(None).table;
            assert!(prices.windows(2).all(|w| w[0] <= w[1]), "{prices:?}");
            assert!((prices[CELLS] - 1.0).abs() < 1e-12 && prices[0] == 0.0);
        }
    }

    #[test]
    fn it_comes_close_to_the_best_value_of_the_demand() {
        // Weak duality: Σ y d is at most the cards needed. Here 30 cards with
        // 60 + 40, 20 with 50 + 50 and 7 whole ones are needed: 57.
        let mix = demand(&[(60, 30.0), (40, 30.0), (50, 40.0), (100, 7.0)]);
        let prices = mix.prices(None).table;
        let value: f64 = mix.cards.iter().map(|(g, d)| prices[*g] * d).sum();
        assert!((56.5..=57.0 + 1e-9).contains(&value), "{value}");
    }

    #[test]
    fn a_similar_demand_is_a_good_start() {
        let all = demand(&[(60, 30.0), (40, 30.0), (50, 40.0), (100, 7.0)]).prices(None);
        let few = demand(&[(60, 10.0), (40, 30.0), (30, 1.0), (100, 7.0)]);
        let (near, own) = (few.prices(Some(&all)).table, few.prices(None).table);
        let value = |t: &Table| few.cards.iter().map(|(g, d)| t[*g] * d).sum::<f64>();
        assert!(value(&near) > 0.995 * value(&own), "{} {}", value(&near), value(&own));
    }

    #[test]
    fn waste_is_what_no_job_will_take() {
        let jobs = Demand { cards: vec![], jobs: vec![(30, 0.5)] };
        let waste = jobs.waste();
        assert!((waste[29] - 0.29).abs() < 1e-12);
        // Two of 30 fit in 65, and after 40 jobs they have come.
        assert!((waste[65] - 0.05).abs() < 1e-3, "{}", waste[65]);
        assert_eq!(Demand::default().waste()[CELLS], 1.0);
    }

    #[test]
    fn the_quotient_is_the_exponential() {
        for i in 0..=50 {
            let h = f64::from(i) / 100.0;
            assert!((shrink(h) - (-h).exp()).abs() < 5e-5);
        }
    }
}
