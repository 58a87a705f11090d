//! A rig of real Kubernetes clusters on one machine, and the end-to-end tests that run on it.
//!
//! * [`rig`] starts clusters: one etcd, and a kube-apiserver, kube-controller-manager, kube-scheduler and kwok each.
//! * [`binaries`] finds those programs, or builds them once into a cache folder outside the tree.
//! * [`process`] runs a program that ends with its owner, also when the owner is killed.
//! * [`audit`] reads API servers' audit logs: who wrote what, how often, when.
//! * [`proxy`] is the link between a spoke and the hub, and can be cut.
//! * [`procfs`] says what a process has used of CPU and memory.
//! * [`fleet`] sets up a hub and its spokes on a rig, as a platform team would.
//! * [`mod@bench`] measures.
//! * [`mod@scenario`] runs named end-to-end scenarios against one shared world.
//! * [`work`] has queues and Jobs as users write them, and waits for what becomes of them.
//! * [`kueue`] has what the scenarios of Kueue's checklist share: a hub with home queues, teams, drafts of objects.
//! * [`demo`] is what `cargo xtask demo` shows.
//! * [`wait`] asks again, within a bound, until something holds.

pub mod audit;
pub mod bench;
pub mod binaries;
pub mod demo;
pub mod fleet;
pub mod kueue;
pub mod process;
pub mod procfs;
pub mod proxy;
pub mod rig;
pub mod scenario;
pub mod wait;
pub mod work;
