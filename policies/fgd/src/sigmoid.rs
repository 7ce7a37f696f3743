//! ⌊100 · sigmoid(d)⌋ without an exponential: the places where the floor
//! steps up are known, so a score is the number of steps passed.

/// ln(k / (100 − k)) for k = 51 to 99: where 100 · sigmoid reaches k. Those
/// below 50 are the same with the other sign; 50 is reached at 0.
#[allow(clippy::unreadable_literal, reason = "computed, to the last digit")]
const LOGIT: [f64; 49] = [
    0.040005334613699164,
    0.08004270767353643,
    0.12014431184206324,
    0.1603426500751794,
    0.20067069546215116,
    0.24116205681688807,
    0.2818511521409877,
    0.322773392263051,
    0.36396537720141164,
    0.4054651081081644,
    0.44731221804366483,
    0.4895482253187058,
    0.5322168137473082,
    0.5753641449035618,
    0.6190392084062234,
    0.6632942174102642,
    0.7081850579244858,
    0.7537718023763802,
    0.8001193001121132,
    0.8472978603872036,
    0.8953840470548414,
    0.9444616088408514,
    0.994622575144062,
    1.0459685551826876,
    1.0986122886681098,
    1.1526795099383855,
    1.2083112059245342,
    1.2656663733312759,
    1.3249254147435985,
    1.3862943611198906,
    1.4500101755059982,
    1.5163474893680884,
    1.5856272637403819,
    1.6582280766035324,
    1.7346010553881064,
    1.8152899666382492,
    1.900958761193047,
    1.992430164690206,
    2.0907410969337694,
    2.1972245773362196,
    2.3136349291806306,
    2.4423470353692043,
    2.586689344097943,
    2.751535313041949,
    2.9444389791664403,
    3.1780538303479458,
    3.4760986898352733,
    3.8918202981106265,
    4.59511985013459,
];

/// A little more than where 100 · sigmoid reaches 99.
const END: f64 = 4.6;
/// Steps between −END and END: fewer than 1024 and more than 511, each
/// narrower than any two places where the floor steps up.
const STEPS: i64 = 1024;

/// For each step what the floor is at its beginning, and where it goes up.
#[derive(Clone, Debug)]
pub struct Floors {
    end: i64,
    shift: u32,
    /// Score at the beginning of each step.
    scores: Vec<u8>,
    /// By score: the smallest weighted difference of the next one.
    next: Vec<i64>,
}

impl Floors {
    /// For differences in milli-cards times `weight`, the sum of all weights.
    pub fn new(weight: i64) -> Self {
        let scale = 1000.0 * weight as f64;
        let next: Vec<i64> = (1..=100)
            .map(|score: usize| match score {
                50 => 0.0,
                51..100 => LOGIT[score - 51],
                100.. => f64::INFINITY,
                _ => -LOGIT[49 - score],
            })
            .map(|at| (scale * at).ceil() as i64)
            .collect();
        let end = (END * scale) as i64;
        let shift = (0..63).find(|shift| (2 * end) >> shift < STEPS).unwrap_or(0);
        let begin = |step: i64| (step << shift) - end;
        let passed = |at: i64| next.iter().filter(|floor| **floor <= at).count() as u8;
        let scores = (0..=(2 * end) >> shift).map(|step| passed(begin(step))).collect();
        Self { end, shift, scores, next }
    }

    /// ⌊100 · sigmoid(difference / (1000 · weight))⌋.
    #[inline]
    pub fn score(&self, difference: i64) -> i32 {
        let step = (difference.clamp(-self.end, self.end) + self.end) >> self.shift;
        let score = self.scores.get(step as usize).copied().unwrap_or(0);
        let up = self.next.get(usize::from(score)).is_some_and(|next| *next <= difference);
        i32::from(score) + i32::from(up)
    }
}

#[cfg(test)]
mod tests {
    use super::Floors;

    #[test]
    fn it_is_the_floor_of_the_sigmoid() {
        for weight in [1, 7, 8152, 1 << 31] {
            let floors = Floors::new(weight);
            for milli in -8000..=8000_i64 {
                let x = milli as f64 / 1000.0;
                let sigmoid = 100.0 / (1.0 + (-x).exp());
                let score = floors.score(milli * weight);
                assert_eq!(score, sigmoid.floor() as i32, "{milli} of weight {weight}");
            }
            assert_eq!(floors.score(0), 50);
            assert_eq!(floors.score(-1), 49);
        }
    }
}
