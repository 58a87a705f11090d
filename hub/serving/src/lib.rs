//! What the hub serves to operators, over TLS: [`metrics`] and the [`visibility`] API.
//!
//! ```text
//! Prometheus ─── HTTPS, token ────▶ metrics ────┐            ┌─ happenings (Measures)
//!                                               ├─ asks ─▶ brain
//! kube-apiserver ─ HTTPS, front proxy ▶ visibility ┘
//! ```
//!
//! Nothing here decides or writes anything, and nothing here keeps state about workloads but counters: levels are asked for
//! when somebody looks. Certificates can be exchanged while connections run. Who asks is known by a certificate of the API
//! server's front proxy or by a token, and what they may see is asked of the API server each time.

pub mod auth;
pub mod certificates;
pub mod front_proxy;
pub mod https;
pub mod metrics;
pub mod visibility;
