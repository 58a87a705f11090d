//! The types that prost and tonic generate from `proto/fairlead.proto`.

#![expect(
    clippy::pedantic,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::clone_on_ref_ptr,
    clippy::excessive_nesting,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code"
)]

tonic::include_proto!("fairlead.link.v1");
