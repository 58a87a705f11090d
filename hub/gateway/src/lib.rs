//! Spoke sessions and enrolment on the hub.
