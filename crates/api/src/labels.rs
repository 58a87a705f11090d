//! Every label, annotation, finalizer, gate and controller name in use.

use std::fmt;

/// The label on a job that names its LocalQueue.
pub const QUEUE_NAME: &str = "kueue.x-k8s.io/queue-name";
/// The LocalQueue that jobs without [`QUEUE_NAME`] get, in namespaces that have one of this name.
pub const DEFAULT_QUEUE: &str = "default";
/// The label on a job that names its WorkloadPriorityClass.
pub const PRIORITY_CLASS: &str = "kueue.x-k8s.io/priority-class";
/// The label on a job that limits how long it may run once admitted, in seconds.
pub const MAX_EXEC_TIME_SECONDS: &str = "kueue.x-k8s.io/max-exec-time-seconds";
/// The annotation (a label in older manifests) that adopts an existing Workload.
pub const PREBUILT_WORKLOAD: &str = "kueue.x-k8s.io/prebuilt-workload-name";
/// The label on a Workload that holds the UID of its job.
pub const JOB_UID: &str = "kueue.x-k8s.io/job-uid";
/// The annotation on a Workload that holds its job's group, version and kind.
pub const JOB_OWNER_GVK: &str = "kueue.x-k8s.io/job-owner-gvk";
/// The annotation on a Workload that holds its job's name.
pub const JOB_OWNER_NAME: &str = "kueue.x-k8s.io/job-owner-name";
/// The label on a pod template that names its pod set.
pub const POD_SET: &str = "kueue.x-k8s.io/podset";
/// The label on a pod template that names the ClusterQueue.
pub const CLUSTER_QUEUE_NAME: &str = "kueue.x-k8s.io/cluster-queue-name";
/// The label on a pod template that names the LocalQueue.
pub const LOCAL_QUEUE_NAME: &str = "kueue.x-k8s.io/local-queue-name";
/// The annotation on a pod template that names the Workload.
pub const WORKLOAD: &str = "kueue.x-k8s.io/workload";
/// The WorkloadPriorityClass of jobs without [`PRIORITY_CLASS`], where one of this name exists.
pub const DEFAULT_PRIORITY_CLASS: &str = "default";
/// The annotation on a Job that says how few pods side by side are enough to start it (partial admission).
pub const JOB_MIN_PARALLELISM: &str = "kueue.x-k8s.io/job-min-parallelism";
/// The annotation (value [`TRUE`]) on a Job whose completions follow its parallelism.
pub const JOB_COMPLETIONS_EQUAL_PARALLELISM: &str = "kueue.x-k8s.io/job-completions-equal-parallelism";
/// The annotation on a job that lists what must be emptied before it may be admitted, separated by commas.
pub const ADMISSION_GATED_BY: &str = "kueue.x-k8s.io/admission-gated-by";
/// The annotation on a Workload that adds a signed number to its priority.
pub const PRIORITY_BOOST: &str = "kueue.x-k8s.io/priority-boost";
/// The annotation (value [`TRUE`]) on a job, and on its Workload, that may grow and shrink while it runs.
pub const ELASTIC_JOB: &str = "kueue.x-k8s.io/elastic-job";
/// The scheduling gate on pods until they are told their place in a topology.
pub const TOPOLOGY_GATE: &str = "kueue.x-k8s.io/topology";
/// The label (value [`TRUE`]) on pods whose room a topology assignment accounts for.
pub const TOPOLOGY_AWARE: &str = "kueue.x-k8s.io/tas";
/// The annotation on a pod template: all pods in one domain of this level.
pub const REQUIRED_TOPOLOGY: &str = "kueue.x-k8s.io/podset-required-topology";
/// The annotation on a pod template: all pods in one domain of this level, if that is possible.
pub const PREFERRED_TOPOLOGY: &str = "kueue.x-k8s.io/podset-preferred-topology";
/// The annotation (value [`TRUE`]) on a pod template: the pods anywhere, on capacity that is tracked.
pub const UNCONSTRAINED_TOPOLOGY: &str = "kueue.x-k8s.io/podset-unconstrained-topology";
/// The annotation on a pod template: each slice of the pods in one domain of this level.
pub const SLICE_TOPOLOGY: &str = "kueue.x-k8s.io/podset-slice-required-topology";
/// The annotation on a pod template: how many pods are in a slice.
pub const SLICE_SIZE: &str = "kueue.x-k8s.io/podset-slice-size";
/// The annotation on a pod template: slices within slices, as a JSON list of `{topology, size}`, widest first.
pub const SLICE_CONSTRAINTS: &str = "kueue.x-k8s.io/podset-slice-required-topology-constraints";
/// The annotation on a pod template: pod sets of one group stand in one domain together.
pub const POD_SET_GROUP: &str = "kueue.x-k8s.io/podset-group-name";
/// The label by which the Job controller numbers the pods of an indexed Job.
pub const JOB_COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The label by which the Job controller marks its pods with the UID of their Job.
pub const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
/// Keys with this prefix are removed from copies, because a spoke may run Kueue itself.
pub const KUEUE_PREFIX: &str = "kueue.x-k8s.io/";

/// The finalizer on Workloads, ClusterQueues, ResourceFlavors, AdmissionChecks and Topologies. On a Workload it
/// goes when the spoke has confirmed the stop, or a Tombstone carries the debt.
pub const RESOURCE_IN_USE: &str = "kueue.x-k8s.io/resource-in-use";
/// The finalizer on copies on a spoke. It goes when the hub has stored the result or ordered the stop.
pub const COPY_FINALIZER: &str = "fairlead.dev/copy";

/// Three uses of one name: the controller name of our AdmissionCheck, the value of `spec.managedBy` on federated
/// jobs, and the label (value [`TRUE`]) that the hub sets on LocalQueues of federated ClusterQueues.
pub const DISPATCH: &str = "fairlead.dev/dispatch";
/// The name MultiKueue uses for what [`DISPATCH`] means here, as a controller name and as `managedBy`. It is
/// understood as ours.
pub const MULTIKUEUE: &str = "kueue.x-k8s.io/multikueue";
/// The `managedBy` of jobs that the built-in Job controller runs.
pub const BUILTIN_JOB_CONTROLLER: &str = "kubernetes.io/job-controller";
/// The value of labels that are switches.
pub const TRUE: &str = "true";

/// The annotation on a copy that holds the run: the UID of the user's job on the hub.
pub const RUN: &str = "fairlead.dev/run";
/// The label on a copy that holds the placement's id.
pub const PLACEMENT: &str = "fairlead.dev/placement";
/// The annotation on a copy that holds the epoch, written `term.seq`.
pub const EPOCH: &str = "fairlead.dev/epoch";
/// The annotation on a copy that holds the hub's incarnation.
pub const HUB: &str = "fairlead.dev/hub";

/// The node label (and ResourceFlavor node label) that holds the cluster's name. Hub only: copies lose it.
pub const CLUSTER: &str = "fairlead.dev/cluster";
/// The node label (and ResourceFlavor node label) that holds the cloud. Hub only: copies lose it.
pub const CLOUD: &str = "fairlead.dev/cloud";
/// The node labels that the hub evaluates and removes from copies.
pub const HUB_ONLY_NODE_KEYS: [&str; 2] = [CLUSTER, CLOUD];

/// The label on generated definitions that holds [`crate::SCHEMA_VERSION`].
pub const SCHEMA: &str = "fairlead.dev/schema";
/// The label (value [`TRUE`]) on, and the type of, the Secret that holds the record of a join token.
pub const JOIN_TOKEN: &str = "fairlead.dev/join-token";

/// The name of the one HubState.
pub const HUB_STATE_NAME: &str = "fairlead";
/// The name of the one SpokePolicy that the agent obeys.
pub const SPOKE_POLICY_NAME: &str = "fairlead";
/// The namespace that hub and agent run in unless told otherwise.
pub const SYSTEM_NAMESPACE: &str = "fairlead-system";
/// The service account of the hub, in [`SYSTEM_NAMESPACE`].
pub const HUB_SERVICE_ACCOUNT: &str = "fairlead-hub";
/// The APIService of the visibility API.
pub const VISIBILITY_API_SERVICE: &str = "v1beta2.visibility.kueue.x-k8s.io";
/// The service account of the agent, in [`SYSTEM_NAMESPACE`].
pub const AGENT_SERVICE_ACCOUNT: &str = "fairlead-agent";
/// The Secret in the agent's namespace that holds its key and certificate.
pub const AGENT_IDENTITY: &str = "fairlead-identity";
/// The service account that the agent impersonates in a tenant's namespace unless SpokePolicy names another.
pub const TENANT_SERVICE_ACCOUNT: &str = "fairlead-tenant";
/// The RBAC verb on `jobs.fairlead.dev` that the admission policy asks for before it lets a queued job start.
/// No such resource exists; the verb is a permission and nothing else.
pub const UNSUSPEND_VERB: &str = "unsuspend";

/// Who writes, in server-side apply and in `managedFields`: one name per controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldManager {
    /// The hub's writes on Workload statuses: admission, placements, verdict, conditions.
    Admission,
    /// The hub's creation of Workloads and its finalizers on them.
    Workloads,
    /// The hub's mirror of a copy's status onto the user's job, and unsuspending it.
    Mirror,
    /// The hub's statuses, labels and finalizers on queues, flavors, checks and policies.
    Queues,
    /// The hub's statuses of Clusters and what enrolment stores.
    Clusters,
    /// The hub's HubState and Tombstones.
    Leadership,
    /// The agent on a spoke.
    Agent,
    /// The command line.
    Cli,
}

impl FieldManager {
    /// Every field manager.
    pub const ALL: [Self; 8] = [
        Self::Admission,
        Self::Workloads,
        Self::Mirror,
        Self::Queues,
        Self::Clusters,
        Self::Leadership,
        Self::Agent,
        Self::Cli,
    ];

    /// The name as the API server stores it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admission => "fairlead-admission",
            Self::Workloads => "fairlead-workloads",
            Self::Mirror => "fairlead-mirror",
            Self::Queues => "fairlead-queues",
            Self::Clusters => "fairlead-clusters",
            Self::Leadership => "fairlead-leadership",
            Self::Agent => "fairlead-agent",
            Self::Cli => "kubectl-fairlead",
        }
    }
}

impl fmt::Display for FieldManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The user agent of the hub; the audit log counts by it.
pub const HUB_USER_AGENT: &str = concat!("fairlead-hub/", env!("CARGO_PKG_VERSION"));
/// The user agent of the agent.
pub const AGENT_USER_AGENT: &str = concat!("fairlead-agent/", env!("CARGO_PKG_VERSION"));
/// The user agent of the command line.
pub const CLI_USER_AGENT: &str = concat!("kubectl-fairlead/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn field_managers_are_distinct_and_short_enough_for_the_api_server() {
        let names: BTreeSet<_> = FieldManager::ALL.iter().map(|manager| manager.as_str()).collect();
        assert_eq!(names.len(), FieldManager::ALL.len());
        assert!(names.iter().all(|name| name.len() <= 128));
    }
}
