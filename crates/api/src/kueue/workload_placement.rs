//! What Fairlead adds to a Workload's status: promises and the explanation of decisions.

use std::sync::Arc;

use fairlead_model as model;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Quantity, schema};

/// Most placements that a Workload remembers. Closed ones go first.
pub const MAX_PLACEMENTS: usize = 8;

/// One promise: this run, this spoke, this epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// The placement's id. It is never used again.
    #[schemars(length(min = 1, max = 63))]
    pub id: String,

    /// The name of the Cluster that the promise was made to.
    #[schemars(length(min = 1, max = 253))]
    pub cluster: String,

    /// The UID of that Cluster. A new Cluster of the same name is another one.
    #[schemars(length(min = 1, max = 64))]
    pub cluster_uid: String,

    /// When the promise was made or last renewed. It never falls.
    pub epoch: PlacementEpoch,

    /// How far it has come.
    pub state: PlacementState,

    /// Why it is in this state, as a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub reason: Option<String>,
}

/// A leader's term and a count within it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementEpoch {
    /// The term of the leader that made the promise.
    #[schemars(schema_with = "schema::counter")]
    pub term: u64,

    /// The count within the term, from 1.
    #[schemars(schema_with = "schema::counter")]
    pub seq: u64,
}

impl From<model::Epoch> for PlacementEpoch {
    fn from(epoch: model::Epoch) -> Self {
        Self { term: epoch.term.0, seq: epoch.seq }
    }
}

impl From<PlacementEpoch> for model::Epoch {
    fn from(epoch: PlacementEpoch) -> Self {
        Self::new(epoch.term, epoch.seq)
    }
}

/// How far a placement has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum PlacementState {
    /// Decided and stored; the spoke may or may not have been told to start.
    Committed,
    /// The spoke confirmed that the copy exists.
    Started,
    /// Pods of the copy run.
    Running,
    /// The copy ended by itself, and the result is stored here.
    Finished,
    /// The spoke was told to stop the copy, and the stop is not proven.
    Stopping,
    /// Nothing of it runs, and that is proven.
    Closed,
}

impl PlacementState {
    /// Whether something may run, or may yet be started, under this promise.
    pub const fn is_open(self) -> bool {
        !matches!(self, Self::Closed)
    }
}

/// The explanation of one decision. At most 8 KiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The token that names the decision, for example `WaitingForQuota` or `NoSingleNodeFits`.
    #[schemars(length(min = 1, max = 128))]
    pub code: String,

    /// One sentence for people.
    #[schemars(length(max = 1024))]
    pub message: String,

    /// When it was decided.
    pub at: Time,

    /// What was looked at, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "atomic"))]
    pub candidates: Vec<VerdictCandidate>,
}

/// One place that was looked at, and the first rule that failed there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerdictCandidate {
    /// The Cluster's name; empty when the flavor failed before any cluster was looked at.
    #[schemars(length(max = 253))]
    pub cluster: String,

    /// The flavor; absent when the pod sets use several.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub flavor: Option<String>,

    /// The first rule that failed, or `Fits`.
    #[schemars(length(min = 1, max = 128))]
    pub code: String,

    /// The resource that was short.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 316))]
    pub resource: Option<String>,

    /// How much of it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<Quantity>,

    /// How much of it was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<Quantity>,

    /// How much of it was missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shortfall: Option<Quantity>,

    /// What a spoke said when it refused, or other detail.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub message: Option<String>,
}

/// Longest messages that are stored, in bytes.
const VERDICT_MESSAGE: usize = 1024;
const CANDIDATE_MESSAGE: usize = 256;

/// The most bytes that a stored verdict has as JSON.
pub const MAX_VERDICT_BYTES: usize = 8 << 10;

impl Verdict {
    /// The stored form of an engine's verdict, decided at `at`. Long messages are cut, and the last candidates go
    /// until the whole has at most [`MAX_VERDICT_BYTES`].
    pub fn of(verdict: &model::Verdict, at: Time) -> Self {
        let candidates = verdict.candidates.iter().take(model::MAX_CANDIDATES);
        let mut stored = Self {
            code: verdict.reason.token().to_owned(),
            message: cut(&verdict.message, VERDICT_MESSAGE),
            at,
            candidates: candidates.map(VerdictCandidate::of).collect(),
        };
        while stored.size() > MAX_VERDICT_BYTES && stored.candidates.pop().is_some() {}
        stored
    }

    fn size(&self) -> usize {
        serde_json::to_vec(self).map_or(0, |json| json.len())
    }

    /// Whether both say the same, whenever it was decided. A verdict that says nothing new is not written.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.code == other.code && self.message == other.message && self.candidates == other.candidates
    }
}

impl VerdictCandidate {
    fn of(candidate: &model::Candidate) -> Self {
        let short = candidate.shortfall.as_ref();
        let quantity = |amount: fn(&model::Shortfall) -> i64| {
            short.map(|short| Quantity::of(&short.resource, amount(short).max(0)))
        };
        Self {
            cluster: candidate.cluster.to_string(),
            flavor: filled(&candidate.flavor),
            code: candidate.reason.token().to_owned(),
            resource: short.map(|short| short.resource.to_string()),
            requested: quantity(|short| short.requested),
            available: quantity(|short| short.available),
            shortfall: quantity(model::Shortfall::missing),
            message: filled(&candidate.detail).map(|detail| cut(&detail, CANDIDATE_MESSAGE)),
        }
    }
}

fn filled(text: &Arc<str>) -> Option<String> {
    if text.is_empty() { None } else { Some(text.to_string()) }
}

/// The longest beginning of `text` that has at most `most` bytes and ends between characters.
fn cut(text: &str, most: usize) -> String {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use fairlead_model::{Candidate, MAX_CANDIDATES, Reason, Shortfall};

    use super::*;

    fn epoch_zero() -> Time {
        Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH)
    }

    fn candidate(detail: &str) -> Candidate {
        Candidate {
            cluster: "c".repeat(253).into(),
            flavor: "f".repeat(253).into(),
            reason: Reason::NoSingleNodeFits,
            shortfall: Some(Shortfall { resource: "nvidia.com/gpu".into(), requested: 8, available: -1 }),
            detail: detail.into(),
        }
    }

    #[test]
    fn the_largest_verdict_fits_into_its_8_kib() {
        let verdict = model::Verdict {
            reason: Reason::NoSingleNodeFits,
            cluster: None,
            message: "m".repeat(100_000).into(),
            candidates: vec![candidate(&"d".repeat(100_000)); MAX_CANDIDATES + 4],
        };
        let stored = Verdict::of(&verdict, epoch_zero());
        assert!(serde_json::to_vec(&stored).unwrap().len() <= MAX_VERDICT_BYTES);
        assert!(stored.candidates.len() >= 6, "{}", stored.candidates.len());
    }

    #[test]
    fn a_hostile_message_leaves_room_for_itself_only() {
        let verdict = model::Verdict {
            reason: Reason::SpokeRefused,
            cluster: None,
            message: "\u{1}".repeat(100_000).into(),
            candidates: vec![candidate(&"\u{1}é".repeat(1000)); MAX_CANDIDATES],
        };
        let stored = Verdict::of(&verdict, epoch_zero());
        assert!(serde_json::to_vec(&stored).unwrap().len() <= MAX_VERDICT_BYTES);
        assert_eq!(stored.message.len(), VERDICT_MESSAGE);
    }

    #[test]
    fn an_ordinary_verdict_keeps_all_candidates() {
        let mut ordinary = candidate("2 of 3 pods fit");
        ordinary.cluster = "onprem-a".into();
        ordinary.flavor = "h100".into();
        let verdict = model::Verdict {
            reason: Reason::WaitingForCapacity,
            cluster: None,
            message: "waits".into(),
            candidates: vec![ordinary; MAX_CANDIDATES + 4],
        };
        assert_eq!(Verdict::of(&verdict, epoch_zero()).candidates.len(), MAX_CANDIDATES);
    }

    #[test]
    fn shortfalls_are_quantities_and_never_negative() {
        let stored = VerdictCandidate::of(&candidate(""));
        assert_eq!(stored.requested, Some("8".into()));
        assert_eq!(stored.available, Some("0".into()));
        assert_eq!(stored.shortfall, Some("9".into()));
        assert_eq!(stored.message, None);
    }

    #[test]
    fn only_closed_placements_are_not_open() {
        use PlacementState::{Closed, Committed, Finished, Running, Started, Stopping};
        for state in [Committed, Started, Running, Finished, Stopping] {
            assert!(state.is_open(), "{state:?}");
        }
        assert!(!Closed.is_open());
    }
}
