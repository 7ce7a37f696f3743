//! Every constant of the rule, and the two profiles that set them.

use crater_sdk::Settings;

/// The constants. Amounts of GPU are in cards, weights have no unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// Part of expected waste in a card's stranded value; the rest is priced.
    pub waste: f64,
    /// Charge for a share that opens an idle card.
    pub open: f64,
    /// Weight of idle GPUs that lack their usual cores, and which part of the
    /// mix's cores a GPU counts as usual.
    pub usual: (f64, f64),
    /// The same for the cores without which hardly a job runs.
    pub least: (f64, f64),
    /// Weight of free GPU whose cores the mix's own jobs show to be too few, and
    /// how much of the cores of work without a GPU is set aside.
    pub curve: (f64, f64),
    /// Weight of scarcity, per requested card, and where it begins.
    pub scarcity: (f64, f64),
    /// Weight of the room for jobs of several cards.
    pub several: f64,
    /// Whether work without a GPU pays for that room, too.
    pub several_for_all: bool,
    /// Pull towards nodes that are nearly full: whole cards, shares, no GPU.
    pub drain: [f64; 3],
    /// Jobs that the mix must have seen.
    pub minimum: i64,
}

/// Names of the profiles.
const PROFILES: [&str; 2] = ["steady", "fill"];

/// What differs between the profiles, in thousandths: waste, open, several,
/// drain-whole, drain-share, drain-cpu, scarcity-from.
const VALUES: [[i32; 7]; 2] = [[200, 60, 400, 200, 200, 800, 300], [200, 30, 70, 0, 0, 0, 500]];

impl Constants {
    /// What the queue's configuration sets, the profile's value for the rest.
    pub fn read(config: &str) -> Result<Self, String> {
        let mut settings = Settings::read(config)?;
        let profile = settings.choice("profile", &PROFILES, 0)?;
        let [waste, open, several, whole, share, cpu, from] = VALUES[profile];
        let mut milli = |name, most, default| {
            settings.int(name, 0..=most, default).map(|n| f64::from(n) / 1000.0)
        };
        let waste = milli("waste", 1000, waste)?;
        let open = milli("open", 1000, open)?;
        let several = milli("several", 10_000, several)?;
        let drain = [
            milli("drain-whole", 10_000, whole)?,
            milli("drain-share", 10_000, share)?,
            milli("drain-cpu", 10_000, cpu)?,
        ];
        let usual = (milli("cores-usual", 10_000, 200)?, milli("cores-usual-part", 10_000, 820)?);
        let least = (milli("cores-least", 10_000, 300)?, milli("cores-least-part", 10_000, 400)?);
        let curve = (milli("cores-curve", 10_000, 0)?, milli("cores-curve-others", 10_000, 1750)?);
        let scarcity = (milli("scarcity", 100_000, 4000)?, milli("scarcity-from", 10_000, from)?);
        let several_for_all = settings.flag("several-for-all", profile == 0)?;
        let minimum = i64::from(settings.int("minimum", 1..=1_000_000, 250)?);
        settings.end()?;
        Ok(Self {
            waste,
            open,
            usual,
            least,
            curve,
            scarcity,
            several,
            several_for_all,
            drain,
            minimum,
        })
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact figures")]
mod tests {
    use super::*;

    #[test]
    fn a_profile_sets_what_the_configuration_does_not() {
        let steady = Constants::read("{}").unwrap();
        assert_eq!((steady.waste, steady.open, steady.several_for_all), (0.2, 0.06, true));
        let fill = Constants::read(r#"{"profile": "fill", "open": 50}"#).unwrap();
        assert_eq!((fill.waste, fill.open, fill.several_for_all), (0.2, 0.05, false));
        assert_eq!((fill.drain, fill.scarcity), ([0.0; 3], (4.0, 0.5)));
        assert_eq!((steady.drain, steady.scarcity), ([0.2, 0.2, 0.8], (4.0, 0.3)));
        assert_eq!(Constants::read(r#"{"cores-curve": 650}"#).unwrap().curve, (0.65, 1.75));
        let error = Constants::read(r#"{"profile": "fast"}"#).unwrap_err();
        assert_eq!(error, "profile: expected one of steady, fill");
        let error = Constants::read(r#"{"waste": 1001}"#).unwrap_err();
        assert_eq!(error, "waste: expected a whole number from 0 to 1000");
    }
}
