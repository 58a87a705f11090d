//! The layout as data: every crate, its folder, whether it is pure, and which crates it may use.

use Purity::{Pure, Shell};

/// Whether a crate may touch the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purity {
    /// Same input, same output: depends on pure crates only, and on nothing from outside.
    Pure,
    /// Talks to something: Kubernetes, a socket, a clock, a file.
    Shell,
}

/// Where one crate stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The package's name.
    pub(super) name: &'static str,
    /// Its folder below the workspace's root.
    pub(super) folder: &'static str,
    /// Whether it is pure.
    pub(super) purity: Purity,
    /// The crates of this workspace that it may use, however directly.
    pub(super) may_use: &'static [&'static str],
}

const fn place(
    name: &'static str,
    folder: &'static str,
    purity: Purity,
    may_use: &'static [&'static str],
) -> Place {
    Place { name, folder, purity, may_use }
}

/// Stands for "any crate": only the end-to-end tests see both sides.
pub(super) const ANY: &str = "*";

/// Every crate of the workspace. A new crate is added here, with the arrows it needs and no more, and to the code
/// map of `ARCHITECTURE.md`.
pub(super) const LAYOUT: [Place; 19] = [
    place("fairlead-model", "crates/model", Pure, &[]),
    place("fairlead-fit", "crates/fit", Pure, &["fairlead-model"]),
    place("fairlead-api", "crates/api", Shell, &["fairlead-model"]),
    place("fairlead-runtime", "crates/runtime", Shell, &["fairlead-model"]),
    place("fairlead-pki", "crates/pki", Shell, &["fairlead-model"]),
    place("fairlead-session", "proto/session", Pure, &["fairlead-model"]),
    place("fairlead-link", "proto/link", Shell, &["fairlead-model", "fairlead-pki", "fairlead-session"]),
    place("fairlead-engine", "hub/engine", Pure, &["fairlead-fit", "fairlead-model"]),
    place("fairlead-placement", "hub/placement", Pure, &["fairlead-model"]),
    place("fairlead-config", "hub/config", Shell, &["fairlead-api", "fairlead-engine", "fairlead-model"]),
    place(
        "fairlead-controller",
        "hub/controller",
        Shell,
        &[
            "fairlead-api",
            "fairlead-engine",
            "fairlead-model",
            "fairlead-placement",
            "fairlead-runtime",
            "fairlead-session",
        ],
    ),
    place(
        "fairlead-gateway",
        "hub/gateway",
        Shell,
        &[
            "fairlead-api",
            "fairlead-controller",
            "fairlead-link",
            "fairlead-model",
            "fairlead-pki",
            "fairlead-runtime",
            "fairlead-session",
        ],
    ),
    place(
        "fairlead-serving",
        "hub/serving",
        Shell,
        &[
            "fairlead-api",
            "fairlead-controller",
            "fairlead-engine",
            "fairlead-fit",
            "fairlead-model",
            "fairlead-pki",
            "fairlead-placement",
            "fairlead-runtime",
            "fairlead-session",
        ],
    ),
    place(
        "fairlead-hub",
        "hub",
        Shell,
        &[
            "fairlead-api",
            "fairlead-config",
            "fairlead-controller",
            "fairlead-gateway",
            "fairlead-link",
            "fairlead-model",
            "fairlead-pki",
            "fairlead-runtime",
            "fairlead-serving",
            "fairlead-session",
        ],
    ),
    place(
        "fairlead-agent",
        "spoke/agent",
        Shell,
        &[
            "fairlead-api",
            "fairlead-fit",
            "fairlead-link",
            "fairlead-model",
            "fairlead-pki",
            "fairlead-runtime",
            "fairlead-session",
        ],
    ),
    place(
        "fairlead-spoke",
        "spoke",
        Shell,
        &[
            "fairlead-agent",
            "fairlead-api",
            "fairlead-link",
            "fairlead-model",
            "fairlead-pki",
            "fairlead-runtime",
        ],
    ),
    place("kubectl-fairlead", "cli", Shell, &["fairlead-api", "fairlead-model", "fairlead-pki"]),
    place("fairlead-multicluster", "tests/multicluster", Shell, &[ANY]),
    place("xtask", "xtask", Shell, &["fairlead-model"]),
];

/// A library from outside that only some crates may use, because it marks a boundary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    /// The packages it is about; a trailing `*` stands for any ending.
    pub(super) packages: &'static [&'static str],
    /// Who may use them.
    pub(super) allowed: &'static [&'static str],
    /// Why nobody else may.
    pub(super) why: &'static str,
}

/// The guarded libraries.
pub(super) const GUARDS: [Guard; 2] = [
    Guard {
        packages: &["kube", "kube-*", "k8s-openapi"],
        allowed: &[
            "fairlead-agent",
            "fairlead-api",
            // The version for their tests, no more.
            "fairlead-config",
            "fairlead-serving",
            "fairlead-controller",
            "fairlead-gateway",
            "fairlead-hub",
            "fairlead-multicluster",
            "fairlead-runtime",
            "fairlead-spoke",
            "kubectl-fairlead",
        ],
        why: "Kubernetes types stay in the shells",
    },
    Guard {
        packages: &["tonic", "tonic-*", "prost", "prost-*", "protox"],
        allowed: &["fairlead-link"],
        why: "the wire format is known to the link alone",
    },
];

/// What tests and benches of pure crates may use from outside: random inputs, reading golden scenarios, counting
/// allocations.
pub(super) const PURE_DEV: [&str; 3] = ["proptest", "serde_json", "stats_alloc"];
