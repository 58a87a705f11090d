//! The hub-spoke wire: protobuf conversions, tonic client and server, mutual TLS.
