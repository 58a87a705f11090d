//! The hub's configuration file: Kueue's `Configuration` (spec/01 §1.11) with a `fairlead` section of our own.
//!
//! ```text
//! text → read → Configuration (every default filled in) + warnings → settings, policy
//! ```
//!
//! Nothing here opens a file or reads a clock. Names and defaults are Kueue's, so that its file is accepted as it is. What
//! has no meaning on a hub is accepted and warned about by name; what nobody knows is refused with its path; and values
//! that contradict each other are refused all at once, each with its path.

mod checks;
mod convert;
mod file;
mod gates;
mod meaningless;
mod reload;
mod values;

use std::fmt;

pub use file::{
    AdmissionFairSharing, ClientConnection, Configuration, Controller, Curve, CustomLabel,
    DeviceClassMapping, FairSharing, Fairlead, Health, Integrations, InternalCertManagement, LeaderElection,
    LocalQueueMetrics, Metrics, MultiKueue, Number, Requeuing, RequeuingTimestamp, ResourceTransformation,
    Resources, Retention, Tls, Transform, VisibilityServer, WaitForPodsReady, Webhook, WorkloadRetention,
};
pub use gates::{Gate, Gates, Stage};
pub use reload::{Change, changes};
pub use values::{GoDuration, Selector, TlsVersion};

/// The version of Kueue's configuration file that is read.
pub const API_VERSION: &str = "config.kueue.x-k8s.io/v1beta2";
/// Its kind.
pub const KIND: &str = "Configuration";

/// A configuration, and what an operator should know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// What is set, with every default filled in.
    pub configuration: Configuration,
    /// One sentence for each key that is set and has no effect here.
    pub warnings: Vec<String>,
}

/// Something that is wrong with the file, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The key, with dots, such as `waitForPodsReady.timeout`; empty for the file as a whole.
    pub path: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// The hub must not start with this file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct ConfigError(pub Vec<Fault>);

impl ConfigError {
    fn one(path: &str, message: impl fmt::Display) -> Self {
        Self(vec![Fault { path: path.to_owned(), message: message.to_string() }])
    }
}

/// Reads and checks a configuration file. `flag` is the value of `--feature-gates` (`Name=true,Other=false`), if it was
/// given; `namespace` is what `namespace:` stands at when the file leaves it out.
///
/// # Errors
///
/// [`ConfigError`] with everything that is wrong.
pub fn read(text: &str, flag: Option<&str>, namespace: &str) -> Result<Loaded, ConfigError> {
    let not_yaml = |why: &dyn fmt::Display| ConfigError::one("", format!("not YAML: {why}"));
    // By way of a YAML value, which refuses a key that is there twice.
    let yaml: serde_yaml::Value = serde_yaml::from_str(text).map_err(|why| not_yaml(&why))?;
    let json = serde_json::to_value(yaml).map_err(|why| not_yaml(&why))?;
    let json = if json.is_null() { serde_json::json!({}) } else { json };
    let json = head(without_nulls(json))?;
    let mut configuration: Configuration =
        serde_path_to_error::deserialize(&json).map_err(|why| from_serde(&why))?;
    if configuration.namespace.is_empty() {
        namespace.clone_into(&mut configuration.namespace);
    }
    configuration.gates = gates::resolve(&configuration.feature_gates, flag)?;
    let faults = checks::check(&configuration);
    if !faults.is_empty() {
        return Err(ConfigError(faults));
    }
    let warnings = meaningless::warnings(&json, &configuration);
    Ok(Loaded { configuration, warnings })
}

/// A key without a value is a key that is not there.
fn without_nulls(json: serde_json::Value) -> serde_json::Value {
    match json {
        serde_json::Value::Object(map) => {
            let kept = map.into_iter().filter(|(_, value)| !value.is_null());
            serde_json::Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        other => other,
    }
}

/// Checks apiVersion and kind, and takes them off.
fn head(mut json: serde_json::Value) -> Result<serde_json::Value, ConfigError> {
    let Some(map) = json.as_object_mut() else {
        return Err(ConfigError::one("", "the file is not a mapping of keys to values"));
    };
    for (key, wanted) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        match map.remove(key) {
            None if map.is_empty() => {}
            Some(found) if found == wanted => {}
            Some(found) => {
                let hint = if key == "apiVersion" { "; rewrite an older file to it" } else { "" };
                return Err(ConfigError::one(key, format!("must be {wanted}, not {found}{hint}")));
            }
            None => return Err(ConfigError::one(key, format!("must be {wanted}"))),
        }
    }
    Ok(json)
}

fn from_serde(error: &serde_path_to_error::Error<serde_json::Error>) -> ConfigError {
    let path = error.path().to_string();
    ConfigError::one(if path == "." { "" } else { &path }, error.inner())
}

#[cfg(test)]
mod tests;
