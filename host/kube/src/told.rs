//! Who is told what, and how often.

use crate::leader::Leader;
use crate::pod::PodSeen;
use crate::say::{self, Word};
use crater_model::Reasons;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// When a pod is told again that it waits.
#[derive(Debug)]
pub(crate) struct Told {
    why: Arc<str>,
    next: Instant,
    pause: Duration,
}

impl Leader {
    /// Tells a pod that it waits: at once when it is first seen to, then when
    /// the reason changed, ever more rarely.
    pub(crate) fn waits(&mut self, pod: &Arc<PodSeen>, why: impl FnOnce() -> Arc<str>) {
        let at = Instant::now();
        if self.told.get(&pod.uid).is_some_and(|t| t.next > at) {
            return;
        }
        let why = why();
        let pause = match self.told.get(&pod.uid) {
            Some(told) if told.why == why => (told.pause * 2).min(Duration::from_mins(5)),
            _ => Duration::from_secs(5),
        };
        let known = pod.told.as_deref() == Some(&*why)
            || self.told.get(&pod.uid).is_some_and(|t| t.why == why);
        if !known && self.hands.words.try_send(Word::Waits(pod.clone(), why.clone())).is_err() {
            // No room for words: later.
            return;
        }
        self.told.insert(pod.uid.clone(), Told { why, next: at + pause, pause });
    }

    /// Tells pods whose words about their cards were not taken as they are.
    pub(crate) fn tell_doubts(&mut self) {
        for (pod, why) in self.mirror.doubted() {
            // Full: the word is lost; the count is not.
            let _ = self.hands.words.try_send(Word::Doubted(pod, why));
        }
    }
}

/// Texts of reasons, each made once a round.
#[derive(Default)]
pub(crate) struct Texts(Vec<(*const Reasons, Arc<str>)>);

impl Texts {
    pub(crate) fn of(&mut self, reasons: &Arc<Reasons>) -> Arc<str> {
        let key = Arc::as_ptr(reasons);
        if let Some((_, text)) = self.0.iter().find(|(k, _)| *k == key) {
            return text.clone();
        }
        let text: Arc<str> = say::message(reasons).into();
        if self.0.len() < 64 {
            self.0.push((key, text.clone()));
        }
        text
    }
}
