//! Trust, tried from outside: signing requests, certificates, tokens, handshakes over in-memory buffers.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot set up its case must fail")]

mod certificates;
mod fixture;
mod handshakes;
mod requests;
mod tokens;
