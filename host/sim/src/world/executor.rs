//! Simulated machines: they start members, let them run and stop them. A pure
//! state machine: it says what it reports and when it wants to be woken, and
//! knows neither the clock nor how messages travel.
//!
//! Orders may come late, twice or in the wrong order: a member is started at
//! most once, and never after it was told to stop.

use crater_model::{ClaimUid, NodeUid, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How a member behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// How long it runs before it ends by itself; `None`: until it is ended.
    pub run: Option<Duration>,
    /// It ends badly.
    pub fails: bool,
    /// How often it saves its progress; `None`: never.
    pub saves: Option<Duration>,
    /// The machine refuses to start it.
    pub refuses: bool,
    /// From the order to start until it runs.
    pub start: Duration,
    /// From the order to stop until it is gone.
    pub shutdown: Duration,
}

/// What an executor is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Start a claim's member.
    Start {
        /// The claim.
        claim: ClaimUid,
        /// Where.
        node: NodeUid,
        /// How it behaves.
        behaviour: Behaviour,
    },
    /// Stop it, or never start it.
    Stop(ClaimUid),
}

/// What an executor says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// It is being started.
    Starting(ClaimUid),
    /// It runs.
    Running(ClaimUid),
    /// It ended by itself.
    Ended(ClaimUid, bool),
    /// It was stopped.
    Stopped(ClaimUid),
    /// It was not started, and will not be.
    Refused(ClaimUid),
}

/// When an executor wants to go on with a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// It is up.
    Up(ClaimUid),
    /// It has run its time.
    Done(ClaimUid),
    /// It is down.
    Down(ClaimUid),
}

/// What comes of an order or an alarm.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// To be sent.
    pub reports: Vec<Report>,
    /// To be called again after so long.
    pub alarms: Vec<(Duration, Alarm)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Running,
    Stopping,
    Ended(bool),
    Stopped,
    Refused,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    node: NodeUid,
    behaviour: Behaviour,
    phase: Phase,
    /// When the phase began, for forgetting.
    since: Time,
}

/// All members on all machines.
#[derive(Debug, Default)]
pub struct Executor {
    members: BTreeMap<ClaimUid, Member>,
}

impl Executor {
    /// Carries out an order; one that came before changes nothing.
    pub fn order(&mut self, now: Time, order: Order) -> Effects {
        match order {
            Order::Start { claim, node, behaviour } => self.start(now, claim, node, behaviour),
            Order::Stop(claim) => self.stop(now, claim),
        }
    }

    fn start(
        &mut self,
        now: Time,
        claim: ClaimUid,
        node: NodeUid,
        behaviour: Behaviour,
    ) -> Effects {
        if self.members.contains_key(&claim) {
            return Effects::default();
        }
        let phase = if behaviour.refuses { Phase::Refused } else { Phase::Starting };
        let member = Member { node, behaviour, phase, since: now };
        self.members.insert(claim, member);
        if behaviour.refuses {
            return self.status(claim);
        }
        Effects {
            reports: vec![Report::Starting(claim)],
            alarms: vec![(behaviour.start, Alarm::Up(claim))],
        }
    }

    fn stop(&mut self, now: Time, claim: ClaimUid) -> Effects {
        let never = Member {
            node: NodeUid::default(),
            behaviour: Behaviour::default(),
            phase: Phase::Stopped,
            since: now,
        };
        let member = self.members.entry(claim).or_insert(never);
        match member.phase {
            Phase::Starting | Phase::Running => {
                (member.phase, member.since) = (Phase::Stopping, now);
                let alarm = (member.behaviour.shutdown, Alarm::Down(claim));
                Effects { reports: vec![], alarms: vec![alarm] }
            }
            Phase::Stopping => Effects::default(),
            Phase::Refused => {
                member.phase = Phase::Stopped;
                self.status(claim)
            }
            Phase::Ended(_) | Phase::Stopped => self.status(claim),
        }
    }

    /// Goes on with a member whose time has come.
    pub fn alarm(&mut self, now: Time, alarm: Alarm) -> Effects {
        let (Alarm::Up(claim) | Alarm::Done(claim) | Alarm::Down(claim)) = alarm;
        let Some(member) = self.members.get_mut(&claim) else { return Effects::default() };
        let behaviour = member.behaviour;
        let next = match (alarm, member.phase) {
            (Alarm::Up(_), Phase::Starting) => Phase::Running,
            (Alarm::Done(_), Phase::Running) => Phase::Ended(!behaviour.fails),
            (Alarm::Down(_), Phase::Stopping) => Phase::Stopped,
            _ => return Effects::default(),
        };
        (member.phase, member.since) = (next, now);
        let mut effects = self.status(claim);
        if next == Phase::Running {
            effects.alarms.extend(behaviour.run.map(|run| (run, Alarm::Done(claim))));
        }
        effects
    }

    /// Lets a member that starts or runs end by itself now.
    pub fn end(&mut self, now: Time, claim: ClaimUid, success: bool) -> Effects {
        let Some(member) = self.members.get_mut(&claim) else { return Effects::default() };
        if !matches!(member.phase, Phase::Starting | Phase::Running) {
            return Effects::default();
        }
        (member.phase, member.since) = (Phase::Ended(success), now);
        self.status(claim)
    }

    /// Says again where a member stands; nothing of one that is on its way
    /// down or unknown.
    pub fn status(&self, claim: ClaimUid) -> Effects {
        let report = match self.members.get(&claim).map(|m| m.phase) {
            Some(Phase::Starting) => Report::Starting(claim),
            Some(Phase::Running) => Report::Running(claim),
            Some(Phase::Ended(success)) => Report::Ended(claim, success),
            Some(Phase::Stopped) => Report::Stopped(claim),
            Some(Phase::Refused) => Report::Refused(claim),
            Some(Phase::Stopping) | None => return Effects::default(),
        };
        Effects { reports: vec![report], alarms: vec![] }
    }

    /// Whether it ever heard of a claim (and has not forgotten it).
    pub fn knows(&self, claim: ClaimUid) -> bool {
        self.members.contains_key(&claim)
    }

    /// Members with processes, and where.
    pub fn live(&self) -> impl Iterator<Item = (ClaimUid, NodeUid)> + '_ {
        let live = |p| matches!(p, Phase::Starting | Phase::Running | Phase::Stopping);
        self.members.iter().filter(move |(_, m)| live(m.phase)).map(|(c, m)| (*c, m.node))
    }

    /// A machine is gone and its processes with it; it reports nothing.
    pub fn lose_node(&mut self, now: Time, node: NodeUid) {
        for member in self.members.values_mut().filter(|m| m.node == node) {
            (member.phase, member.since) = (Phase::Stopped, now);
        }
    }

    /// Forgets members that were over before `before` and that the books no
    /// longer name. An order to start one must not be under way any more.
    pub fn forget(&mut self, before: Time, known: &BTreeSet<ClaimUid>) {
        self.members.retain(|claim, m| {
            let over = matches!(m.phase, Phase::Ended(_) | Phase::Stopped | Phase::Refused);
            !over || m.since >= before || known.contains(claim)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: ClaimUid = ClaimUid(1);
    const NOW: Time = Time(0);

    fn start() -> Order {
        let secs = Duration::from_secs;
        let behaviour = Behaviour {
            run: Some(secs(60)),
            start: secs(2),
            shutdown: secs(9),
            ..Behaviour::default()
        };
        Order::Start { claim: CLAIM, node: NodeUid(0), behaviour }
    }

    #[test]
    fn a_member_starts_once_runs_and_ends() {
        let mut executor = Executor::default();
        let first = executor.order(NOW, start());
        assert_eq!(first.reports, [Report::Starting(CLAIM)]);
        assert_eq!(first.alarms, [(Duration::from_secs(2), Alarm::Up(CLAIM))]);
        assert_eq!(executor.order(NOW, start()), Effects::default(), "an order that came twice");
        let up = executor.alarm(NOW, Alarm::Up(CLAIM));
        assert_eq!(up.reports, [Report::Running(CLAIM)]);
        let done = executor.alarm(NOW, Alarm::Done(CLAIM));
        assert_eq!(done.reports, [Report::Ended(CLAIM, true)]);
        assert_eq!(executor.live().count(), 0);
        let stop = executor.order(NOW, Order::Stop(CLAIM));
        assert_eq!(stop.reports, [Report::Ended(CLAIM, true)], "it ended before");
    }

    #[test]
    fn an_order_to_start_that_comes_after_the_one_to_stop_starts_nothing() {
        let mut executor = Executor::default();
        assert_eq!(executor.order(NOW, Order::Stop(CLAIM)).reports, [Report::Stopped(CLAIM)]);
        assert_eq!(executor.order(NOW, start()), Effects::default());
        assert_eq!(executor.live().count(), 0);
    }

    #[test]
    fn stopping_takes_its_time_and_a_lost_machine_none() {
        let mut executor = Executor::default();
        executor.order(NOW, start());
        let stop = executor.order(NOW, Order::Stop(CLAIM));
        assert_eq!(stop.alarms, [(Duration::from_secs(9), Alarm::Down(CLAIM))]);
        assert_eq!(executor.live().count(), 1, "its processes are still there");
        executor.lose_node(NOW, NodeUid(0));
        assert_eq!(executor.live().count(), 0);
        assert_eq!(executor.alarm(NOW, Alarm::Down(CLAIM)), Effects::default());
        executor.forget(Time(1), &BTreeSet::from([CLAIM]));
        assert!(executor.knows(CLAIM), "the books still name it");
        executor.forget(Time(1), &BTreeSet::new());
        assert!(!executor.knows(CLAIM));
    }
}
