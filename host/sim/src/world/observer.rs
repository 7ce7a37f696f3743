//! Those who look on while a world runs.

use super::command::{Command, CommandError};
use super::executor::Executor;
use crater_engine::{Committed, Plan, Policies, State};
use crater_model::Time;
use crater_model::event::Entry;

/// Is told what happens, and may stop the world. Changes nothing else.
pub trait Observer {
    /// An entry was journalled and applied; `None` where none is kept.
    fn applied(&mut self, state: &State, entry: Option<&Entry>) {
        let _ = (state, entry);
    }

    /// Something happened on the machines or in the books.
    fn machines(&mut self, state: &State, executor: &Executor) {
        let _ = (state, executor);
    }

    /// The ledger refused what can only come of a defect.
    fn defect(&mut self, text: &str) {
        let _ = text;
    }

    /// A command was refused; nothing changed.
    fn refused(&mut self, at: Time, command: &Command, error: &CommandError) {
        let _ = (at, command, error);
    }

    /// A round was decided on these books; nothing is committed yet.
    fn decided(&mut self, state: &State, policies: &Policies, plan: &Plan) {
        let _ = (state, policies, plan);
    }

    /// The plan was committed.
    fn committed(&mut self, state: &State, plan: &Plan, committed: &Committed) {
        let _ = (state, plan, committed);
    }

    /// Nothing more is placed at this moment; the plan is the last one, which
    /// placed nothing.
    fn settled(&mut self, state: &State, policies: &Policies, plan: &Plan) {
        let _ = (state, policies, plan);
    }

    /// Whether the world should stop.
    fn stop(&self) -> bool {
        false
    }
}

/// Nobody looks on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Observer for Nobody {}

/// Two that look on, the first one first.
pub struct Both<'a>(
    /// The first.
    pub &'a mut dyn Observer,
    /// The second.
    pub &'a mut dyn Observer,
);

impl Observer for Both<'_> {
    fn applied(&mut self, state: &State, entry: Option<&Entry>) {
        self.0.applied(state, entry);
        self.1.applied(state, entry);
    }

    fn machines(&mut self, state: &State, executor: &Executor) {
        self.0.machines(state, executor);
        self.1.machines(state, executor);
    }

    fn defect(&mut self, text: &str) {
        self.0.defect(text);
        self.1.defect(text);
    }

    fn refused(&mut self, at: Time, command: &Command, error: &CommandError) {
        self.0.refused(at, command, error);
        self.1.refused(at, command, error);
    }

    fn decided(&mut self, state: &State, policies: &Policies, plan: &Plan) {
        self.0.decided(state, policies, plan);
        self.1.decided(state, policies, plan);
    }

    fn committed(&mut self, state: &State, plan: &Plan, committed: &Committed) {
        self.0.committed(state, plan, committed);
        self.1.committed(state, plan, committed);
    }

    fn settled(&mut self, state: &State, policies: &Policies, plan: &Plan) {
        self.0.settled(state, policies, plan);
        self.1.settled(state, policies, plan);
    }

    fn stop(&self) -> bool {
        self.0.stop() || self.1.stop()
    }
}
