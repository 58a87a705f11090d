//! WorkloadPriorityClass: a named priority in the queues.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A WorkloadPriorityClass gives a priority a name. It orders queues and preemption, and says nothing about the
/// priority of pods on nodes. A job names it in the label `kueue.x-k8s.io/priority-class`.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "WorkloadPriorityClass",
    plural = "workloadpriorityclasses",
    no_spec,
    schema = "disabled",
    doc = "A named priority in the queues.",
    derive = "Default",
    derive = "PartialEq",
    shortname = "wpc",
    category = "fairlead",
    printcolumn = r#"{"name": "Value", "type": "integer", "jsonPath": ".value"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadPriorityClassFields {
    /// The priority; higher comes first. A change reaches every Workload that names this class.
    pub value: i32,

    /// For what work the class is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub description: Option<String>,
}
