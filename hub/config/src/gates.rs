//! Feature gates: Kueue's names, stages and defaults (spec/12), and the few that change what the hub does.

use std::collections::{BTreeMap, BTreeSet};

use crate::{ConfigError, Fault};

mod table;

use table::{NEEDS, TABLE};

/// How settled a feature is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// May change; off unless said otherwise.
    Alpha,
    /// Settled enough to be on.
    Beta,
    /// Settled: the gate is locked.
    Stable,
    /// On its way out.
    Deprecated,
}

/// A gate as Kueue declares it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declared {
    pub(crate) name: &'static str,
    pub(crate) stage: Stage,
    pub(crate) default: bool,
}

/// A gate that changes what the hub does. The hub behaves as if every other stood at its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    /// Takes fair sharing between LocalQueues into account where it is configured.
    AdmissionFairSharing,
    /// Switches the readiness of pods off.
    DisableWaitForPodsReady,
    /// Metrics of LocalQueues.
    LocalQueueMetrics,
    /// The metric of how long making a Workload takes.
    MetricForWorkloadCreationLatency,
    /// Metrics of Cohorts.
    MetricsForCohorts,
    /// A workload whose failed nodes cannot be replaced is evicted.
    TasFailedNodeReplacementFailFast,
    /// Metrics of why workloads wait.
    UnadmittedWorkloadsObservability,
    /// The visibility API.
    VisibilityOnDemand,
}

impl Gate {
    /// Every gate that has an effect.
    pub const ALL: [Self; 8] = [
        Self::AdmissionFairSharing,
        Self::DisableWaitForPodsReady,
        Self::LocalQueueMetrics,
        Self::MetricForWorkloadCreationLatency,
        Self::MetricsForCohorts,
        Self::TasFailedNodeReplacementFailFast,
        Self::UnadmittedWorkloadsObservability,
        Self::VisibilityOnDemand,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AdmissionFairSharing => "AdmissionFairSharing",
            Self::DisableWaitForPodsReady => "DisableWaitForPodsReady",
            Self::LocalQueueMetrics => "LocalQueueMetrics",
            Self::MetricForWorkloadCreationLatency => "MetricForWorkloadCreationLatency",
            Self::MetricsForCohorts => "MetricsForCohorts",
            Self::TasFailedNodeReplacementFailFast => "TASFailedNodeReplacementFailFast",
            Self::UnadmittedWorkloadsObservability => "UnadmittedWorkloadsObservability",
            Self::VisibilityOnDemand => "VisibilityOnDemand",
        }
    }
}

/// Which gates stand otherwise than by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    moved: BTreeMap<&'static str, bool>,
}

impl Gates {
    /// Whether a gate is open.
    pub fn is_on(&self, gate: Gate) -> bool {
        self.holds(gate.name())
    }

    /// The gates that stand otherwise than by default and change nothing here.
    pub(crate) fn idle(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let known: BTreeSet<&str> = Gate::ALL.iter().map(|gate| gate.name()).collect();
        self.moved.iter().map(|(name, on)| (*name, *on)).filter(move |(name, _)| !known.contains(name))
    }

    fn holds(&self, name: &str) -> bool {
        self.moved.get(name).copied().unwrap_or_else(|| declared(name).is_some_and(|gate| gate.default))
    }
}

fn declared(name: &str) -> Option<&'static Declared> {
    TABLE.iter().find(|gate| gate.name == name)
}

/// What holds, from the file or from the flag. Both at once are refused: nobody could say which one counts.
pub(crate) fn resolve(file: &BTreeMap<String, bool>, flag: Option<&str>) -> Result<Gates, ConfigError> {
    let from_flag = flag.map(parse).transpose()?;
    let set = match from_flag {
        Some(_) if !file.is_empty() => {
            return Err(ConfigError::one("featureGates", "set here and by --feature-gates; use one of them"));
        }
        Some(set) => set,
        None => file.clone(),
    };
    let mut faults = Vec::new();
    let mut gates = Gates::default();
    for (name, on) in &set {
        match accept(name, *on) {
            Ok(gate) if gate.default == *on => {}
            Ok(gate) => drop(gates.moved.insert(gate.name, *on)),
            Err(message) => faults.push(Fault { path: format!("featureGates.{name}"), message }),
        }
    }
    faults.extend(unmet(&set, &gates));
    if faults.is_empty() { Ok(gates) } else { Err(ConfigError(faults)) }
}

fn accept(name: &str, on: bool) -> Result<&'static Declared, String> {
    let gate = declared(name).ok_or_else(|| "there is no such feature gate".to_owned())?;
    if gate.stage == Stage::Stable && gate.default != on {
        return Err(format!("is settled and cannot be set to {on}"));
    }
    Ok(gate)
}

/// Gates that were opened while one that they need is closed. A gate that nobody touched gives way silently.
fn unmet(set: &BTreeMap<String, bool>, gates: &Gates) -> Vec<Fault> {
    let needs = NEEDS.iter().flat_map(|(names, need)| names.iter().map(move |name| (*name, *need)));
    needs
        .filter(|(name, need)| set.get(*name) == Some(&true) && !gates.holds(need))
        .map(|(name, need)| Fault { path: format!("featureGates.{name}"), message: format!("needs {need}") })
        .collect()
}

/// Reads `A=true,B=false`.
fn parse(flag: &str) -> Result<BTreeMap<String, bool>, ConfigError> {
    let wrong =
        |pair: &str| ConfigError::one("--feature-gates", format!("{pair:?} is not Name=true or Name=false"));
    let pairs = flag.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').ok_or_else(|| wrong(pair))?;
            let on = value.trim().to_ascii_lowercase().parse().map_err(|_not_a_bool| wrong(pair))?;
            Ok((name.trim().to_owned(), on))
        })
        .collect()
}
