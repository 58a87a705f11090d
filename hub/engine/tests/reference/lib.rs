//! A slow, obvious reference of the admission rules, written from the specification: no indexes, no ordinals, no
//! planes. Everything is looked up by name and computed anew by walking. It judges the engine; nothing ships it.
//!
//! What it has: quota trees [T-1]…[T-9], queues …[Q-11], flavors [F-1]…[F-9] without transformations, rounds
//! [S-1]…[S-5], classical and fair preemption [P-1]…[P-6], partial admission. What it lacks: topology, other
//! clusters, admission checks, admission fair sharing, second pass, elastic slices, and settling: it says when Kueue's
//! rules start going round in a circle. It knows one namespace rule less:
//! LimitRanges and RuntimeClasses are not applied.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::ObjectKey;

mod assign;
mod classical;
mod facts;
mod fair;
mod order;
mod outcome;
mod queues;
mod requests;
mod round;
mod share;
mod tree;
mod victims;

pub(crate) use outcome::{Admitted, Evicted, Looked, RoundPlan};
pub(crate) use queues::Reference;

/// A name.
pub(crate) type Name = Arc<str>;

/// A flavor and a resource: what quota is counted in.
pub(crate) type FlavorResource = (Name, Name);

/// Amounts by flavor and resource.
pub(crate) type Amounts = BTreeMap<FlavorResource, i64>;

/// Reserved amounts of every ClusterQueue, and what of them reaches every Cohort [T-3]; zeros are left out.
pub(crate) type UsageByNode = BTreeMap<Name, Amounts>;

/// Pending workloads of one ClusterQueue in queue order: the heap, and the parked ones.
pub(crate) type PendingLists = (Vec<ObjectKey>, Vec<ObjectKey>);
