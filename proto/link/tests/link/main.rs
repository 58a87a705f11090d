//! The link over real loopback sockets: both lanes, limits, cuts, and the protocol's two ends on top.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot set up its case must fail"
)]

mod dialling;
mod enrolment;
mod fixture;
mod protocol;
mod sessions;
