//! Node labels, taints and tolerations, with the operators of Kubernetes.

use crate::parse::FieldError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Labels of a node.
pub type Labels = BTreeMap<Arc<str>, Arc<str>>;

/// How a label's value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Operator {
    /// One of the values.
    In,
    /// None of the values, or no such label.
    NotIn,
    /// The label is there.
    Exists,
    /// It is not.
    DoesNotExist,
    /// An integer greater than the one value.
    Gt,
    /// An integer less than the one value.
    Lt,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Condition {
    /// Label key.
    pub key: Arc<str>,
    /// Comparison.
    pub operator: Operator,
    /// Values to compare with.
    #[serde(default)]
    pub values: Vec<Arc<str>>,
}

impl Condition {
    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let number = |v: &Arc<str>| v.parse::<i64>().ok();
        let compare = |f: fn(i64, i64) -> bool| {
            let limit = self.values.first().and_then(number);
            matches!((value.and_then(number), limit), (Some(v), Some(l)) if f(v, l))
        };
        match self.operator {
            Operator::In => value.is_some_and(|v| self.values.contains(v)),
            Operator::NotIn => value.is_none_or(|v| !self.values.contains(v)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt => compare(|v, l| v > l),
            Operator::Lt => compare(|v, l| v < l),
        }
    }
}

/// Conditions that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Selector {
    /// The conditions.
    pub all: Vec<Condition>,
}

impl Selector {
    /// `key=value`.
    pub fn label(key: &str, value: &str) -> Self {
        let condition =
            Condition { key: key.into(), operator: Operator::In, values: vec![value.into()] };
        Self { all: vec![condition] }
    }

    /// Whether a node with these labels is meant. A selector without
    /// conditions means no node, as in Kubernetes.
    pub fn matches(&self, labels: &Labels) -> bool {
        !self.all.is_empty() && self.all.iter().all(|c| c.matches(labels))
    }

    /// Refuses operators with the wrong number or sort of values.
    pub fn check(&self) -> Result<(), FieldError> {
        for c in &self.all {
            let expected = match c.operator {
                Operator::In | Operator::NotIn if c.values.is_empty() => "at least one value",
                Operator::Exists | Operator::DoesNotExist if !c.values.is_empty() => "no value",
                Operator::Gt | Operator::Lt
                    if c.values.len() != 1 || c.values[0].parse::<i64>().is_err() =>
                {
                    "one integer"
                }
                _ => continue,
            };
            let value = format!("{:?} {}", c.operator, c.values.join(","));
            return Err(FieldError::new(&format!("node-selector {}", c.key), &value, expected));
        }
        Ok(())
    }
}

/// What a taint does to work that does not bear it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Effect {
    /// Nothing new starts.
    NoSchedule,
    /// Nothing new starts if there is another node. Crater treats it as a wish.
    PreferNoSchedule,
    /// Nothing new starts, and what runs is ended by whoever set it.
    NoExecute,
}

/// A node's mark that keeps work away.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Taint {
    /// Key.
    pub key: Arc<str>,
    /// Value, may be empty.
    #[serde(default)]
    pub value: Arc<str>,
    /// Effect.
    pub effect: Effect,
}

/// A member's word that it bears a taint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Toleration {
    /// Key; empty bears every key.
    #[serde(default)]
    pub key: Arc<str>,
    /// The value it must have; `None` bears any.
    #[serde(default)]
    pub value: Option<Arc<str>>,
    /// The effect it bears; `None` bears all.
    #[serde(default)]
    pub effect: Option<Effect>,
}

impl Toleration {
    fn bears(&self, taint: &Taint) -> bool {
        (self.key.is_empty() || self.key == taint.key)
            && self.value.as_ref().is_none_or(|v| *v == taint.value)
            && self.effect.is_none_or(|e| e == taint.effect)
    }
}

/// The first taint that keeps the work away.
pub fn untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    taints
        .iter()
        .filter(|t| t.effect != Effect::PreferNoSchedule)
        .find(|t| !tolerations.iter().any(|tol| tol.bears(t)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect()
    }

    fn holds(key: &str, operator: Operator, values: &[&str], on: &[(&str, &str)]) -> bool {
        let values = values.iter().map(|v| (*v).into()).collect();
        Selector { all: vec![Condition { key: key.into(), operator, values }] }.matches(&labels(on))
    }

    #[test]
    fn operators_are_those_of_kubernetes() {
        let on = [("zone", "a"), ("gen", "9")];
        assert!(holds("zone", Operator::In, &["a", "b"], &on));
        assert!(!holds("zone", Operator::In, &["b"], &on));
        assert!(holds("zone", Operator::NotIn, &["b"], &on));
        assert!(holds("rack", Operator::NotIn, &["b"], &on), "absent counts as not in");
        assert!(holds("zone", Operator::Exists, &[], &on));
        assert!(holds("rack", Operator::DoesNotExist, &[], &on));
        assert!(holds("gen", Operator::Gt, &["8"], &on));
        assert!(!holds("gen", Operator::Lt, &["9"], &on));
        assert!(!holds("zone", Operator::Gt, &["8"], &on), "no number");
        assert!(!Selector::default().matches(&labels(&on)));
    }

    #[test]
    fn taints_keep_away_what_does_not_bear_them() {
        let taint = |key: &str, effect| Taint { key: key.into(), value: "x".into(), effect };
        let taints = [taint("soft", Effect::PreferNoSchedule), taint("gpu", Effect::NoSchedule)];
        assert_eq!(untolerated(&taints, &[]).map(|t| &*t.key), Some("gpu"));
        let any = Toleration { key: "".into(), value: None, effect: None };
        assert_eq!(untolerated(&taints, std::slice::from_ref(&any)), None);
        let other = Toleration { key: "gpu".into(), value: Some("y".into()), effect: None };
        assert!(untolerated(&taints, &[other]).is_some());
    }
}
