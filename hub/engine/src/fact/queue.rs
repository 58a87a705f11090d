//! Facts about queues, cohorts, flavors and what else an administrator applies.

use std::sync::Arc;

use fairlead_model::{Amount, LabelSelector, Labels, ObjectKey, ResourceName, Resources, Taint, Toleration};

/// In which order heads leave a ClusterQueue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueingStrategy {
    /// A head that does not fit blocks those behind it.
    StrictFifo,
    /// A head that does not fit is parked, and the next is looked at.
    #[default]
    BestEffortFifo,
}

/// Whether a queue admits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopPolicy {
    /// It admits.
    #[default]
    None,
    /// It admits nothing new; what runs goes on.
    Hold,
    /// It admits nothing new, and what runs is evicted.
    HoldAndDrain,
}

/// Quota of one resource in one flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The resource.
    pub resource: ResourceName,
    /// Guaranteed.
    pub nominal: Amount,
    /// How much more may be borrowed; none means no limit.
    pub borrowing: Option<Amount>,
    /// How much of the nominal amount others may use; none means all of it.
    pub lending: Option<Amount>,
}

/// The quotas of one flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorQuotas {
    /// The flavor's name.
    pub flavor: Arc<str>,
    /// One per covered resource.
    pub quotas: Vec<Quota>,
}

/// Resources that come from the same flavor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceGroup {
    /// The resources that the group covers.
    pub resources: Vec<ResourceName>,
    /// Flavors in order of preference.
    pub flavors: Vec<FlavorQuotas>,
}

/// What a scan over flavors does when it can borrow, or preempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WhenCan {
    /// It may stop there.
    MayStopSearch,
    /// It looks at the next flavor first.
    TryNextFlavor,
}

/// What counts as better when nothing fits without either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FungibilityPreference {
    /// Borrow rather than preempt.
    #[default]
    BorrowingOverPreemption,
    /// Preempt rather than borrow.
    PreemptionOverBorrowing,
}

/// How flavors of a group stand in for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fungibility {
    /// When borrowing would do.
    pub when_can_borrow: WhenCan,
    /// When preempting would do.
    pub when_can_preempt: WhenCan,
    /// Which of the two is better.
    pub preference: FungibilityPreference,
}

impl Default for Fungibility {
    fn default() -> Self {
        Self {
            when_can_borrow: WhenCan::MayStopSearch,
            when_can_preempt: WhenCan::TryNextFlavor,
            preference: FungibilityPreference::BorrowingOverPreemption,
        }
    }
}

/// Which workloads may be preempted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VictimPolicy {
    /// None.
    #[default]
    Never,
    /// Those of lower priority.
    LowerPriority,
    /// Those, and newer ones of equal priority.
    LowerOrNewerEqualPriority,
    /// All.
    Any,
}

/// Preempting in the cohort while borrowing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BorrowWithinCohort {
    /// Victims must not have a higher priority than this, where set.
    pub max_priority: Option<i64>,
}

/// A ClusterQueue's rules of preemption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preemption {
    /// Victims in the queue itself.
    pub within_queue: VictimPolicy,
    /// Victims in queues of the cohort that borrow.
    pub reclaim: VictimPolicy,
    /// Victims of lower priority in the cohort even while borrowing; none means never.
    pub borrow: Option<BorrowWithinCohort>,
}

/// A fair-sharing weight in billionths; zero means "last in every comparison".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(pub i64);

impl Default for Weight {
    fn default() -> Self {
        Self(1_000_000_000)
    }
}

/// An admission check that a ClusterQueue names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckUse {
    /// Name of the AdmissionCheck.
    pub check: Arc<str>,
    /// Flavors it applies to; empty means all.
    pub flavors: Vec<Arc<str>>,
}

/// A ClusterQueue. Concurrent admission [P-10] is not built: its policy is not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterQueue {
    /// Its name.
    pub name: Arc<str>,
    /// The cohort it belongs to.
    pub cohort: Option<Arc<str>>,
    /// Its quota.
    pub groups: Vec<ResourceGroup>,
    /// The order in which heads leave it.
    pub strategy: QueueingStrategy,
    /// Which namespaces it takes workloads from; none means no namespace.
    pub namespaces: Option<LabelSelector>,
    /// How its flavors stand in for each other.
    pub fungibility: Fungibility,
    /// Its rules of preemption.
    pub preemption: Preemption,
    /// Whether it admits.
    pub stop: StopPolicy,
    /// Its admission checks.
    pub checks: Vec<CheckUse>,
    /// Its weight in fair sharing.
    pub weight: Weight,
    /// Its LocalQueues take turns by their use (`UsageBasedAdmissionFairSharing`).
    pub usage_based: bool,
    /// It is being deleted: it admits nothing.
    pub terminating: bool,
}

/// A LocalQueue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalQueue {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The ClusterQueue it leads to.
    pub cluster_queue: Arc<str>,
    /// Whether it admits.
    pub stop: StopPolicy,
    /// Its weight in admission fair sharing.
    pub weight: Weight,
}

/// A Cohort object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cohort {
    /// Its name.
    pub name: Arc<str>,
    /// The cohort above it.
    pub parent: Option<Arc<str>>,
    /// Quota of its own, for all below it.
    pub groups: Vec<ResourceGroup>,
    /// Its weight in fair sharing.
    pub weight: Weight,
}

/// A ResourceFlavor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flavor {
    /// Its name.
    pub name: Arc<str>,
    /// Labels of its nodes.
    pub node_labels: Labels,
    /// Taints of its nodes.
    pub taints: Vec<Taint>,
    /// Tolerations that its pods get.
    pub tolerations: Vec<Toleration>,
    /// The Topology of its nodes.
    pub topology: Option<Arc<str>>,
}

/// A Topology: node labels from the widest to the narrowest level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Its name.
    pub name: Arc<str>,
    /// The label keys.
    pub levels: Vec<Arc<str>>,
}

/// Which clusters a dispatch check allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DispatchPolicy {
    /// Clusters must match.
    pub required: LabelSelector,
    /// Clusters that match come first.
    pub preferred: Option<LabelSelector>,
    /// Only these names (`clusters` of a MultiKueueConfig); none means any.
    pub names: Option<Vec<Arc<str>>>,
}

/// What an admission check is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// Ours: it makes the queue federated.
    Dispatch(DispatchPolicy),
    /// Another controller's: it must be Ready before the cluster is chosen.
    Other,
}

/// An AdmissionCheck, with its parameters resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionCheck {
    /// Its name.
    pub name: Arc<str>,
    /// What it is for.
    pub kind: CheckKind,
    /// Its parameters exist and are valid, its controller is there.
    pub usable: bool,
}

/// A Namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub name: Arc<str>,
    /// Its labels.
    pub labels: Labels,
}

/// What a LimitRange item limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitType {
    /// Each container.
    Container,
    /// The pod as a whole.
    Pod,
}

/// One item of a LimitRange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitRangeItem {
    /// What it limits.
    pub kind: LimitType,
    /// Largest limit.
    pub max: Resources,
    /// Smallest request.
    pub min: Resources,
    /// Limit where none is given.
    pub default: Resources,
    /// Request where none is given.
    pub default_request: Resources,
}

/// A LimitRange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitRange {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its items.
    pub items: Vec<LimitRangeItem>,
}
