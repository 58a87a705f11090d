//! Conditions: their types, their reasons, and setting them without needless writes.

mod tokens;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

pub use tokens::{
    AdmissionCheckReason, AdmittedReason, CheckState, ClusterCondition, ClusterQueueReason, ClusterReason,
    DeactivationReason, EvictedReason, FinishedReason, LocalQueueReason, PodsReadyReason, PreemptedReason,
    QuotaReservedReason, RequeuedReason, WorkloadCondition,
};

/// The condition that every kind with a readiness of its own has.
pub const ACTIVE: &str = "Active";

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody can tell.
    Unknown,
}

impl Status {
    /// The text that Kubernetes uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Status {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// What a controller wants a condition to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The condition's type.
    pub type_: String,
    /// Whether it holds.
    pub status: Status,
    /// A CamelCase token.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// The `metadata.generation` that was looked at.
    pub observed_generation: Option<i64>,
}

impl Wanted {
    /// A condition from its parts; the generation is set apart with [`Wanted::at_generation`].
    pub fn new(
        type_: impl Into<String>,
        status: impl Into<Status>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_: type_.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            observed_generation: None,
        }
    }

    /// The same with the generation that was looked at.
    #[must_use]
    pub fn at_generation(mut self, generation: Option<i64>) -> Self {
        self.observed_generation = generation;
        self
    }
}

/// Puts `wanted` into `conditions` and says whether anything changed.
///
/// `lastTransitionTime` becomes `now` only when the status changes, so an unchanged condition costs no write and
/// a new message does not reset the clock that people read. The order of the list is kept; a new type goes last.
pub fn set_condition(conditions: &mut Vec<Condition>, wanted: Wanted, now: &Time) -> bool {
    let Some(current) = conditions.iter_mut().find(|condition| condition.type_ == wanted.type_) else {
        conditions.push(with_time(wanted, now.clone()));
        return true;
    };
    let flipped = current.status != wanted.status.as_str();
    let since = if flipped { now.clone() } else { current.last_transition_time.clone() };
    let next = with_time(wanted, since);
    let changed = *current != next;
    *current = next;
    changed
}

fn with_time(wanted: Wanted, since: Time) -> Condition {
    Condition {
        type_: wanted.type_,
        status: wanted.status.as_str().to_owned(),
        reason: wanted.reason,
        message: wanted.message,
        observed_generation: wanted.observed_generation,
        last_transition_time: since,
    }
}

/// The condition of this type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of this type is there and `True`.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == Status::True.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time(k8s_openapi::jiff::Timestamp::from_second(seconds).unwrap())
    }

    fn wanted(holds: bool, message: &str) -> Wanted {
        Wanted::new(WorkloadCondition::Admitted, holds, AdmittedReason::Admitted, message)
            .at_generation(Some(3))
    }

    #[test]
    fn the_time_moves_only_with_the_status() {
        let mut conditions = Vec::new();
        assert!(set_condition(&mut conditions, wanted(false, "a"), &at(1)));
        assert!(!set_condition(&mut conditions, wanted(false, "a"), &at(2)));
        assert_eq!(conditions[0].last_transition_time, at(1));
        assert!(set_condition(&mut conditions, wanted(false, "b"), &at(3)));
        assert_eq!(conditions[0].last_transition_time, at(1));
        assert!(set_condition(&mut conditions, wanted(true, "b"), &at(4)));
        assert_eq!(conditions[0].last_transition_time, at(4));
        assert_eq!(conditions.len(), 1);
        assert!(is_true(&conditions, "Admitted"));
        assert!(!is_true(&conditions, "Finished"));
    }

    #[test]
    fn a_newer_generation_alone_is_a_change() {
        let mut conditions = vec![];
        set_condition(&mut conditions, wanted(true, "a"), &at(1));
        let newer = wanted(true, "a").at_generation(Some(4));
        assert!(set_condition(&mut conditions, newer, &at(2)));
        assert_eq!(find(&conditions, "Admitted").and_then(|c| c.observed_generation), Some(4));
        assert_eq!(conditions[0].last_transition_time, at(1));
    }
}
