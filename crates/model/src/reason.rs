//! The one list of reasons. The same token stands in conditions, events, verdicts, the CLI and metrics, and each
//! has a page in `docs/reasons/`.

use std::fmt;

/// Defines the reasons with their tokens, so that text and variant cannot drift apart.
macro_rules! reasons {
    ($( $(#[$doc:meta])* $name:ident => $condition:literal; )*) => {
        /// Why something is as it is. [`Reason::token`] is stable API; [`Reason::condition`] is the reason that
        /// Kueue's users know from `QuotaReserved=False`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $( $(#[$doc])* $name, )* }

        impl Reason {
            /// Every reason, in declaration order.
            pub const ALL: &'static [Self] = &[ $( Self::$name, )* ];

            /// The stable token, for example `ExceedsMaxQuota`.
            pub const fn token(self) -> &'static str {
                match self { $( Self::$name => stringify!($name), )* }
            }

            /// The reason used in the `QuotaReserved` condition of a workload that waits for this reason.
            pub const fn condition(self) -> &'static str {
                match self { $( Self::$name => $condition, )* }
            }

            /// The reason with this token.
            pub fn from_token(token: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|reason| reason.token() == token)
            }
        }
    };
}

reasons! {
    /// The candidate fits; nothing failed.
    Fits => "QuotaReserved";
    /// Quota is reserved and the cluster is chosen.
    Admitted => "QuotaReserved";
    /// The workload has not been looked at yet.
    PendingEvaluation => "PendingEvaluation";
    /// The LocalQueue that the job names does not exist in its namespace.
    LocalQueueNotFound => "Misconfigured";
    /// The LocalQueue names a ClusterQueue that does not exist.
    ClusterQueueNotFound => "Misconfigured";
    /// The ClusterQueue does not take workloads from this namespace.
    NamespaceMismatch => "Misconfigured";
    /// The ClusterQueue or one of its flavors, checks or policies is not usable.
    ClusterQueueInactive => "Suspended";
    /// The LocalQueue or ClusterQueue is stopped.
    QueueStopped => "Suspended";
    /// `spec.active` is false.
    Deactivated => "Deactivated";
    /// The job's pod template or counts cannot be read; nothing can be decided.
    InvalidJob => "Misconfigured";
    /// A container asks for more than its own limit, or breaks a LimitRange.
    RequestsExceedLimits => "Misconfigured";
    /// The ClusterQueue has no quota for a requested resource.
    ResourceNotCovered => "NoMatchingFlavor";
    /// The flavor object does not exist.
    FlavorNotFound => "NoMatchingFlavor";
    /// The pod does not tolerate a taint of the flavor.
    UntoleratedTaint => "NoMatchingFlavor";
    /// The pod's node selector or affinity does not match the flavor.
    FlavorMismatch => "NoMatchingFlavor";
    /// The request is larger than the queue could ever get.
    ExceedsMaxQuota => "ExceedsMaxQuota";
    /// The quota is in use; the workload waits its turn.
    WaitingForQuota => "WaitingForQuota";
    /// Quota would have to be taken from others, and nobody may be preempted for it.
    NoPreemptionCandidates => "WaitingForQuota";
    /// It was chosen in its turn, and lost to a workload that was handled earlier in the same round.
    LostToEarlier => "WaitingForQuota";
    /// It would need preemption, and a preemption gate of it is closed.
    PreemptionGated => "WaitingForQuota";
    /// Workloads are being preempted for this one.
    WaitingForPreemptedWorkloads => "WaitingForPreemptedWorkloads";
    /// The queue waits until the pods of the workload that it admitted last are ready.
    WaitingForPodsReady => "WaitingForPodsReady";
    /// The topology request cannot be met now.
    TopologyPlacementFailed => "TopologyPlacementFailed";
    /// Something that the job names must happen before it may be queued.
    AdmissionGated => "AdmissionGated";
    /// The workload was put on hold.
    OnHold => "OnHold";
    /// An admission check is not ready.
    WaitingForAdmissionChecks => "AdmissionGated";
    /// No cluster is registered, or none that the policy and the flavors allow.
    NoEligibleCluster => "NoMatchingFlavor";
    /// Every eligible cluster is out of reach.
    AllClustersUnreachable => "WaitingForQuota";
    /// The cluster is cordoned.
    ClusterCordoned => "WaitingForQuota";
    /// The cluster is not connected, or has not reported its capacity yet.
    ClusterNotReady => "WaitingForQuota";
    /// The cluster's nodes are too small for one pod, even when empty.
    NoSingleNodeFits => "TopologyPlacementFailed";
    /// The cluster's nodes could hold some of the pods, but never all of them, even when empty.
    ExceedsClusterCapacity => "TopologyPlacementFailed";
    /// The cluster could hold the pods, but not now: too little is free.
    WaitingForCapacity => "WaitingForQuota";
    /// A better candidate was chosen.
    NotChosen => "WaitingForQuota";
    /// The spoke refused for a reason of its own.
    SpokeRefused => "WaitingForQuota";
    /// The spoke's policy does not allow what the job needs.
    ForbiddenByPolicy => "WaitingForQuota";
    /// The spoke has no such namespace.
    NamespaceNotFound => "WaitingForQuota";
    /// The spoke lacks a Secret, ConfigMap, claim or service account that the job names.
    MissingReference => "WaitingForQuota";
    /// A foreign object has the job's name on the spoke; it is left alone.
    NameTaken => "WaitingForQuota";
    /// An earlier copy of that name has not stopped yet.
    Busy => "WaitingForQuota";
    /// The spoke has no room for the pods now.
    NoRoom => "WaitingForQuota";
    /// The spoke's API server rejected the job.
    RejectedByApiServer => "WaitingForQuota";
    /// Another queueing system on the spoke suspended the copy.
    SuspendedByLocalQueueing => "WaitingForQuota";
    /// The order's epoch is below one that the spoke has already obeyed.
    StaleEpoch => "WaitingForQuota";
    /// The spoke did not answer in time.
    NoAnswer => "WaitingForQuota";
    /// The job was created before its queue was federated, so it lacks `managedBy` and stays suspended on the
    /// hub while it runs on a spoke.
    ManagedByMissing => "QuotaReserved";
    /// Two hubs claim the same term; the spoke obeys neither.
    SplitBrain => "WaitingForQuota";
    /// The hub's term is below the one the spoke obeys.
    StaleTerm => "WaitingForQuota";
    /// The other side speaks a version of the protocol that is too old or too new.
    UnsupportedProtocol => "WaitingForQuota";
    /// The other side said something that the protocol does not allow there.
    ProtocolViolation => "WaitingForQuota";
    /// The spoke's certificate has come to its end.
    CertificateExpired => "WaitingForQuota";
    /// The spoke's identity was revoked.
    IdentityRevoked => "WaitingForQuota";
    /// The hub cannot reach its own API server, or is not the leader (any more): try again.
    HubUnavailable => "WaitingForQuota";
    /// The hub has no Cluster of that name or identity.
    ClusterNotFound => "Misconfigured";
    /// The signing request of a join is malformed, or carries a key that is not certified.
    SigningRequestRefused => "Misconfigured";
    /// The join token is past its time.
    TokenExpired => "Misconfigured";
    /// The join token is not one of this hub's.
    TokenUnknown => "Misconfigured";
    /// The join token is mistyped: its checksum does not match.
    TokenMistyped => "Misconfigured";
    /// The join token was used with another key.
    TokenUsed => "Misconfigured";
    /// The join token was made for another name.
    TokenWrongName => "Misconfigured";
    /// The run's copy vanished from the spoke without an order of ours.
    CopyVanished => "WaitingForQuota";
    /// The stop of a copy cannot be proven: a node was lost or a pod was deleted by force.
    StopUnproven => "WaitingForQuota";
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_unique_and_read_back() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_token(reason.token()), Some(*reason));
        }
        assert_eq!(Reason::from_token("NoSuchReason"), None);
    }
}
