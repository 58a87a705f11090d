//! Condition types and reasons, as Kueue's users know them. Scripts rely on these texts.

use std::fmt;

/// Defines an enum of CamelCase tokens whose text is the variant's name.
macro_rules! tokens {
    ($(#[$doc:meta])* $name:ident { $( $(#[$variant_doc:meta])* $variant:ident, )* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $( $(#[$variant_doc])* $variant, )* }

        impl $name {
            /// Every token, in the order of declaration.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )* ];

            /// The token as it stands in the API.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => stringify!($variant), )* }
            }

            /// The token with this text.
            pub fn from_token(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|token| token.as_str() == text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl From<$name> for String {
            fn from(token: $name) -> Self {
                token.as_str().to_owned()
            }
        }
    };
}

tokens! {
    /// Conditions of a Workload.
    WorkloadCondition {
        /// Quota is reserved in a ClusterQueue.
        QuotaReserved,
        /// Quota is reserved and every admission check is ready: the job may start.
        Admitted,
        /// The job is over, well or badly.
        Finished,
        /// Every pod of the job is ready or has succeeded.
        PodsReady,
        /// The job was stopped and gives its quota back.
        Evicted,
        /// Quota or room was taken for another workload.
        Preempted,
        /// Whether an evicted workload is back in its queue.
        Requeued,
        /// The workload is about to be deactivated.
        DeactivationTarget,
        /// A pod group waits for replacements of failed pods.
        WaitingForReplacementPods,
        /// Preemption is needed and a gate forbids it.
        BlockedOnPreemptionGates,
    }
}

tokens! {
    /// Reasons of `QuotaReserved`; all but the first belong to `False`.
    QuotaReservedReason {
        /// Quota is reserved.
        QuotaReserved,
        /// No flavor suits the job's resources, tolerations or node selection.
        NoMatchingFlavor,
        /// The quota is in use.
        WaitingForQuota,
        /// The request is larger than the queue could ever get.
        ExceedsMaxQuota,
        /// The topology request cannot be met now.
        TopologyPlacementFailed,
        /// Others are being preempted for this workload.
        WaitingForPreemptedWorkloads,
        /// A queue, class or field that the job names does not exist or is not usable.
        Misconfigured,
        /// The queue is stopped or not active.
        Suspended,
        /// Not looked at yet.
        PendingEvaluation,
        /// The queue waits for earlier workloads to become ready.
        WaitingForPodsReady,
        /// An annotation on the job holds admission back.
        AdmissionGated,
        /// The queue is on hold.
        OnHold,
        /// `spec.active` is false.
        Deactivated,
    }
}

tokens! {
    /// Reasons of `Admitted`; all but the first belong to `False`.
    AdmittedReason {
        /// Admitted.
        Admitted,
        /// No quota is reserved.
        NoReservation,
        /// An admission check is not ready.
        UnsatisfiedAdmissionChecks,
        /// A delayed topology request is pending.
        PendingDelayedTopologyRequests,
    }
}

tokens! {
    /// Reasons of `Evicted`. A deactivation may carry its cause: `DeactivatedDueTo<Cause>`.
    EvictedReason {
        /// Another workload took its place.
        Preempted,
        /// Its pods were not ready in time.
        PodsReadyTimeout,
        /// An admission check asked for it.
        AdmissionCheck,
        /// The ClusterQueue was stopped and drained.
        ClusterQueueStopped,
        /// The LocalQueue was stopped and drained.
        LocalQueueStopped,
        /// Nodes failed.
        NodeFailures,
        /// It moves to a better flavor.
        FlavorMigration,
        /// `spec.active` became false.
        Deactivated,
        /// A variant of a concurrently admitted workload lost.
        VariantEvicted,
        /// Another variant was admitted.
        ConcurrentAdmission,
    }
}

tokens! {
    /// Reasons of `Preempted`.
    PreemptedReason {
        /// By a workload of the same ClusterQueue.
        InClusterQueue,
        /// By a queue of the cohort that reclaims its nominal quota.
        InCohortReclamation,
        /// By a queue of the cohort with a lower share.
        InCohortFairSharing,
        /// By a queue that borrows within the cohort.
        InCohortReclaimWhileBorrowing,
    }
}

tokens! {
    /// Reasons of `Requeued`; when it is `False`, an [`EvictedReason`] may stand there too.
    RequeuedReason {
        /// `spec.active` became true.
        Reactivated,
        /// The wait after an eviction is over.
        BackoffFinished,
        /// The ClusterQueue runs again.
        ClusterQueueRestarted,
        /// The LocalQueue runs again.
        LocalQueueRestarted,
    }
}

tokens! {
    /// Reasons of `Finished`.
    FinishedReason {
        /// The job succeeded.
        Succeeded,
        /// The job failed.
        Failed,
        /// The Workload no longer matches its job.
        OutOfSync,
        /// The job is gone.
        OwnerNotFound,
        /// A newer slice replaced this one.
        WorkloadSliceReplaced,
        /// The job could not be started.
        FailedToStart,
    }
}

tokens! {
    /// Reasons of `PodsReady`.
    PodsReadyReason {
        /// The pods have not been ready yet.
        WaitForStart,
        /// Pods that were ready are not any more.
        WaitForRecovery,
        /// All became ready for the first time.
        Started,
        /// All became ready again.
        Recovered,
    }
}

tokens! {
    /// Reasons of `DeactivationTarget`.
    DeactivationReason {
        /// It was requeued too often.
        RequeuingLimitExceeded,
        /// It ran longer than allowed.
        MaximumExecutionTimeExceeded,
        /// An admission check rejected it.
        AdmissionCheck,
        /// The hub evicted it.
        EvictedOnManagerCluster,
    }
}

tokens! {
    /// Reasons of a ClusterQueue's `Active`. All but `Ready` belong to `False`, in this order of precedence.
    ClusterQueueReason {
        /// The queue is being deleted.
        Terminating,
        /// `spec.stopPolicy` is set.
        Stopped,
        /// A flavor does not exist.
        FlavorNotFound,
        /// An admission check does not exist.
        AdmissionCheckNotFound,
        /// An admission check is not active.
        AdmissionCheckInactive,
        /// More than one dispatch check is named.
        MultipleMultiKueueAdmissionChecks,
        /// The dispatch check is limited to some flavors.
        MultiKueueAdmissionCheckAppliedPerFlavor,
        /// A dispatch check and a provisioning check are combined.
        MultiKueueWithProvisioningRequest,
        /// A topology does not exist.
        TopologyNotFound,
        /// The cohorts above form a circle. Fairlead's own.
        CohortCycle,
        /// Nobody can tell.
        Unknown,
        /// The queue admits workloads.
        Ready,
    }
}

tokens! {
    /// Reasons of a LocalQueue's `Active`.
    LocalQueueReason {
        /// The queue takes workloads.
        Ready,
        /// `spec.stopPolicy` is set.
        Stopped,
        /// The ClusterQueue does not exist.
        ClusterQueueDoesNotExist,
        /// The ClusterQueue is not active.
        ClusterQueueIsInactive,
    }
}

tokens! {
    /// Reasons of an AdmissionCheck's `Active`.
    AdmissionCheckReason {
        /// The check works.
        Active,
        /// Some of the clusters it names are missing or away; it still works.
        SomeActiveClusters,
        /// None of the clusters it names can be used.
        NoUsableClusters,
        /// Its parameters do not exist or are not valid.
        BadConfig,
    }
}

tokens! {
    /// States of one admission check in `status.admissionChecks`.
    CheckState {
        /// Not decided.
        Pending,
        /// Passed.
        Ready,
        /// Failed for now; the workload is evicted and tried again.
        Retry,
        /// Failed for good; the workload is deactivated.
        Rejected,
    }
}

tokens! {
    /// Conditions of a Cluster. Each is set from the first status on, so "unknown" is visible.
    ClusterCondition {
        /// The spoke has redeemed a join token and holds a certificate.
        Registered,
        /// The spoke's session is up.
        Connected,
        /// The certificate is valid and not about to end.
        CredentialsValid,
        /// The spoke's clock is close enough to the hub's.
        ClockSynced,
        /// The spoke speaks a protocol version that the hub speaks.
        VersionCompatible,
        /// New work may be started there.
        Schedulable,
        /// The reported capacity is recent.
        CapacityFresh,
    }
}

tokens! {
    /// Reasons of a Cluster's conditions.
    ClusterReason {
        /// The condition is as it should be.
        AsExpected,
        /// No spoke has joined under this name yet.
        NeverJoined,
        /// No session has been up yet, or the hub has just started.
        NotSeenYet,
        /// Heartbeats are missing.
        HeartbeatMissing,
        /// The session ended.
        Disconnected,
        /// An administrator cordoned the cluster.
        Cordoned,
        /// The certificate has ended.
        CertificateExpired,
        /// The certificate was revoked.
        CertificateRevoked,
        /// The clocks differ by too much.
        ClockOffset,
        /// The versions are too far apart.
        VersionSkew,
        /// No capacity was reported yet.
        NoReport,
        /// The last report is too old.
        ReportStale,
        /// Two hubs claim the same term; the spoke obeys neither.
        SplitBrain,
        /// The hub's term is below the one the spoke obeys.
        StaleTerm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_read_back() {
        for token in WorkloadCondition::ALL {
            assert_eq!(WorkloadCondition::from_token(token.as_str()), Some(*token));
        }
        assert_eq!(QuotaReservedReason::from_token("Nonsense"), None);
        assert_eq!(EvictedReason::PodsReadyTimeout.to_string(), "PodsReadyTimeout");
    }
}
