//! From what the operator wrote to what the programs take.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use fairlead_engine::policy::{
    AdmissionFairSharing, Factor, FairStrategy, RequestRules, Transformation, TransformationStrategy,
};
use fairlead_engine::{Policy, Settings};

use crate::file::{Configuration, Curve, FairSharing, Number, ResourceTransformation, Transform};
use crate::gates::Gate;

/// What `fairSharing.preemptionStrategies` may be.
pub(crate) const STRATEGIES: &str =
    "must be [LessThanOrEqualToFinalShare], [LessThanInitialShare], or both in this order";

/// Cipher suites of TLS 1.2 that are offered, by their IANA names.
pub(crate) const SUITES: [&str; 6] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/// Groups for the key exchange that are offered: number and name.
pub(crate) const GROUPS: [(u16, &str); 4] =
    [(23, "CurveP256"), (24, "CurveP384"), (29, "X25519"), (4588, "X25519MLKEM768")];

/// The number of a group that is offered.
pub(crate) fn group(curve: &Curve) -> Option<u16> {
    let known = GROUPS.iter().find(|(number, name)| match curve {
        Curve::Number(wanted) => wanted == number,
        Curve::Name(wanted) => wanted == name || Some(wanted.as_str()) == name.strip_prefix("Curve"),
    });
    known.map(|(number, _)| *number)
}

/// Reads `:8443`, `127.0.0.1:8443`, or `0` and nothing for "nowhere".
pub(crate) fn address(text: &str) -> Result<Option<SocketAddr>, std::net::AddrParseError> {
    match text.strip_prefix(':') {
        _ if text.is_empty() || text == "0" => Ok(None),
        Some(port) => format!("0.0.0.0:{port}").parse().map(Some),
        None => text.parse().map(Some),
    }
}

/// The strategies, where they are one of the allowed lists.
pub(crate) fn strategies(fair: &FairSharing) -> Option<Vec<FairStrategy>> {
    use FairStrategy::{LessThanInitialShare, LessThanOrEqualToFinalShare};
    let names: Vec<&str> = fair.preemption_strategies.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["LessThanOrEqualToFinalShare"] => Some(vec![LessThanOrEqualToFinalShare]),
        ["LessThanInitialShare"] => Some(vec![LessThanInitialShare]),
        ["LessThanOrEqualToFinalShare", "LessThanInitialShare"] => {
            Some(vec![LessThanOrEqualToFinalShare, LessThanInitialShare])
        }
        _ => None,
    }
}

impl Configuration {
    /// What shapes the engine's world.
    pub fn settings(&self) -> Settings {
        let fair = self.admission_fair_sharing.as_ref();
        let fair = fair.filter(|_| self.gates.is_on(Gate::AdmissionFairSharing));
        Settings {
            requests: RequestRules {
                exclude_prefixes: texts(&self.resources.exclude_resource_prefixes),
                transformations: self.resources.transformations.iter().map(transformation).collect(),
                ignore_undeclared: self.resources.quota_check_strategy == "IgnoreUndeclared",
            },
            admission_fair_sharing: fair.map(|fair| AdmissionFairSharing {
                half_life_ms: fair.usage_half_life_time.millis(),
                sampling_ms: fair.usage_sampling_interval.millis(),
                resource_weights: factors(fair.resource_weights.iter()).collect(),
            }),
            ..Settings::default()
        }
    }

    /// How the engine decides.
    pub fn policy(&self) -> Policy {
        Policy {
            fair_sharing: self.fair_sharing.as_ref().and_then(strategies),
            fail_fast: self.gates.is_on(Gate::TasFailedNodeReplacementFailFast),
            ..Policy::default()
        }
    }

    /// Where metrics are served; none for nowhere.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        address(&self.metrics.bind_address).ok().flatten()
    }

    /// Where probes are answered; none for nowhere.
    pub fn health_address(&self) -> Option<SocketAddr> {
        address(&self.health.health_probe_bind_address).ok().flatten()
    }

    /// Where the visibility API is served; none where its gate is closed.
    pub fn visibility_address(&self) -> Option<SocketAddr> {
        let server = &self.visibility_server;
        let ip = server.bind_address.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        self.gates.is_on(Gate::VisibilityOnDemand).then(|| SocketAddr::new(ip, server.bind_port))
    }

    /// The groups for the key exchange, by number, in order; empty for all.
    pub fn key_exchange_groups(&self) -> Vec<u16> {
        self.tls.curve_preferences.iter().filter_map(group).collect()
    }
}

fn texts(list: &[String]) -> Vec<Arc<str>> {
    list.iter().map(|text| text.as_str().into()).collect()
}

/// Numbers in billionths by resource.
fn factors<'a>(
    numbers: impl Iterator<Item = (&'a String, &'a Number)>,
) -> impl Iterator<Item = (Arc<str>, i64)> {
    // Reading the file has checked that each is a number.
    numbers.map(|(name, number)| (name.as_str().into(), number.0.billionths().unwrap_or_default()))
}

fn transformation(one: &ResourceTransformation) -> Transformation {
    Transformation {
        input: one.input.as_str().into(),
        strategy: match one.strategy {
            Transform::Retain => TransformationStrategy::Retain,
            Transform::Replace => TransformationStrategy::Replace,
        },
        multiply_by: (!one.multiply_by.is_empty()).then(|| one.multiply_by.as_str().into()),
        outputs: factors(one.outputs.iter()).map(|(name, factor)| (name, Factor(factor.into()))).collect(),
    }
}
