//! The vocabulary of Fairlead: ids, epochs, amounts, shapes, reasons, verdicts.
//!
//! Everything that crosses a crate boundary in the deciding half of Fairlead is written in these types. They
//! carry no behaviour that needs a clock, I/O, randomness or Kubernetes, and this crate depends on nothing.
//!
//! One word has one meaning throughout the project; the words are listed in `ARCHITECTURE.md`.

#![deny(
    clippy::iter_over_hash_type,
    clippy::float_arithmetic,
    clippy::float_cmp,
    clippy::disallowed_types,
    clippy::wildcard_enum_match_arm
)]

mod amount;
mod epoch;
mod ids;
mod reason;
mod resources;
mod selector;
mod shape;
mod time;
mod verdict;

pub use amount::Amount;
pub use epoch::{Claim, Epoch, EpochParseError, Floor, Incarnation, Leadership, Nonce, Term};
pub use ids::{ObjectKey, PlacementId, RunId, SpokeId, Uid};
pub use reason::Reason;
pub use resources::{ResourceName, Resources};
pub use selector::{LabelSelector, Labels, NodeConstraints, NodeTerm, Operator, Requirement, Toleration};
pub use shape::{NodeClass, PodDemand, Shape, Taint, TaintEffect};
pub use time::{Millis, Now};
pub use verdict::{Candidate, MAX_CANDIDATES, Shortfall, Verdict};
