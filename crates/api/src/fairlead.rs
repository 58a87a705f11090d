//! Our own kinds, `fairlead.dev/v1alpha1`.
//!
//! Cluster, PlacementPolicy, HubState and Tombstone live on the hub; SpokePolicy lives on a spoke and belongs to
//! its administrator. Join tokens are Secrets, not a kind.

mod cluster;
mod hub_state;
mod placement_policy;
mod spoke_policy;
mod tombstone;

pub use cluster::{
    CapacityMode, Cluster, ClusterIdentity, ClusterSpec, ClusterStatus, ClusterVersions, DeviceCount,
    FlavorCapacity, Presence,
};
pub use hub_state::{HubState, HubStateSpec, HubStateStatus};
pub use placement_policy::{
    ClusterSelector, PlacementPolicy, PlacementPolicySpec, PlacementPolicyStatus, PreferredClusters,
};
pub use spoke_policy::{AllowedNamespace, SpokePolicy, SpokePolicySpec, SpokePolicyStatus};
pub use tombstone::{HeldUsage, Tombstone, TombstoneJob, TombstoneReason, TombstoneSpec, TombstoneStatus};

/// The API group.
pub const GROUP: &str = "fairlead.dev";
/// The version that is stored.
pub const VERSION: &str = "v1alpha1";
