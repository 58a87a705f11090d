//! Rewrites objects of Kueue's older API version into the one that is stored.
//!
//! It works on JSON and touches only what was renamed, so nothing is lost that is newer than this crate. What is in the
//! new form already stays as it is, so converting twice is the same as converting once.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::kueue::{GROUP, VERSION};

/// Versions that are rewritten.
const OLDER: [&str; 2] = ["v1alpha1", "v1beta1"];

/// Why an object cannot be rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertError(String);

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConvertError {}

/// Rewrites an object, or each object of a `List`, to the stored version. Objects of other groups, and those of the
/// stored version, are left alone. Says whether anything was changed.
///
/// # Errors
///
/// When the older and the newer form of a field are both given, or a field cannot be read.
pub fn convert(object: &mut Value) -> Result<bool, ConvertError> {
    if let Some(items) = object.get_mut("items").and_then(Value::as_array_mut) {
        let mut changed = false;
        for item in items {
            changed |= convert(item)?;
        }
        return Ok(changed | retitle(object));
    }
    if !retitle(object) {
        return Ok(false);
    }
    rename_fields(object)?;
    Ok(true)
}

/// Gives an object of an older version the new one's name.
fn retitle(object: &mut Value) -> bool {
    let version =
        object.get("apiVersion").and_then(Value::as_str).and_then(|version| version.strip_prefix(GROUP));
    let older = version.is_some_and(|version| OLDER.contains(&version.trim_start_matches('/')));
    if older {
        object["apiVersion"] = json!(format!("{GROUP}/{VERSION}"));
    }
    older
}

/// Rewrites the fields of an object by its kind, whatever its version says. An object that was stored in the older form
/// and is read as the newer version without a conversion has such fields. Says whether anything was changed.
///
/// # Errors
///
/// As [`convert`].
pub fn rename_fields(object: &mut Value) -> Result<bool, ConvertError> {
    let before = object.clone();
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let at = |field: &str| object.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
    let (mut spec, mut status) = (at("spec"), at("status"));
    match kind.as_str() {
        "ClusterQueue" => cluster_queue(&mut spec)?,
        "Cohort" => rename(&mut spec, "parent", "parentName")?,
        "MultiKueueCluster" => multikueue_cluster(&mut spec)?,
        "Workload" => {
            priority_class(&mut spec);
            workload_status(&mut status)?;
        }
        _ => {}
    }
    for (field, value) in [("spec", spec), ("status", status)] {
        if object.get(field).is_some_and(Value::is_object) {
            object[field] = Value::Object(value);
        }
    }
    Ok(*object != before)
}

fn cluster_queue(spec: &mut Map<String, Value>) -> Result<(), ConvertError> {
    rename(spec, "cohort", "cohortName")?;
    if let Some(fungibility) = spec.get_mut("flavorFungibility").and_then(Value::as_object_mut) {
        for (field, old) in [("whenCanBorrow", "Borrow"), ("whenCanPreempt", "Preempt")] {
            if fungibility.get(field).is_some_and(|value| value == old) {
                fungibility.insert(field.to_owned(), json!("MayStopSearch"));
            }
        }
    }
    let Some(checks) = spec.remove("admissionChecks") else { return Ok(()) };
    let names = checks.as_array().cloned().unwrap_or_default();
    if names.is_empty() {
        return Ok(());
    }
    if spec.contains_key("admissionChecksStrategy") {
        return Err(ConvertError(
            "admissionChecks and admissionChecksStrategy are both given; keep one".to_owned(),
        ));
    }
    let rules: Vec<Value> = names.into_iter().map(|name| json!({ "name": name })).collect();
    spec.insert("admissionChecksStrategy".to_owned(), json!({ "admissionChecks": rules }));
    Ok(())
}

fn multikueue_cluster(spec: &mut Map<String, Value>) -> Result<(), ConvertError> {
    let Some(source) = spec.remove("kubeConfig") else { return Ok(()) };
    if spec.contains_key("clusterSource") {
        return Err(ConvertError("kubeConfig and clusterSource are both given; keep one".to_owned()));
    }
    spec.insert("clusterSource".to_owned(), json!({ "kubeConfig": source }));
    Ok(())
}

fn priority_class(spec: &mut Map<String, Value>) {
    let source = spec.remove("priorityClassSource");
    let Some(name) = spec.remove("priorityClassName").filter(|name| *name != "") else { return };
    let (group, kind) = match source.as_ref().and_then(Value::as_str) {
        Some("scheduling.k8s.io/priorityclass") => ("scheduling.k8s.io", "PriorityClass"),
        Some("kueue.x-k8s.io/workloadpriorityclass") => (GROUP, "WorkloadPriorityClass"),
        // The name of a pod's class without a source says nothing: the priority is what counts.
        _ => return,
    };
    spec.entry("priorityClassRef").or_insert_with(|| json!({ "group": group, "kind": kind, "name": name }));
}

fn workload_status(status: &mut Map<String, Value>) -> Result<(), ConvertError> {
    rename(status, "accumulatedPastExexcutionTimeSeconds", "accumulatedPastExecutionTimeSeconds")?;
    let sets = status.get_mut("admission").and_then(|admission| admission.get_mut("podSetAssignments"));
    for set in sets.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(assignment) = set.get_mut("topologyAssignment").and_then(Value::as_object_mut) {
            topology_assignment(assignment)?;
        }
    }
    Ok(())
}

/// A flat list of domains becomes one slice with a value per level and a count for each domain.
fn topology_assignment(assignment: &mut Map<String, Value>) -> Result<(), ConvertError> {
    let Some(domains) = assignment.remove("domains") else { return Ok(()) };
    let unreadable = || ConvertError("a domain of topologyAssignment cannot be read".to_owned());
    let domains = domains.as_array().cloned().unwrap_or_default();
    let mut counts = Vec::new();
    let mut values: Vec<Vec<Value>> = Vec::new();
    for domain in &domains {
        let of = domain.get("values").and_then(Value::as_array).ok_or_else(unreadable)?;
        values.resize(values.len().max(of.len()), Vec::new());
        for (level, value) in values.iter_mut().zip(of) {
            level.push(value.clone());
        }
        counts.push(domain.get("count").cloned().ok_or_else(unreadable)?);
    }
    if values.iter().any(|level| level.len() != domains.len()) {
        return Err(unreadable());
    }
    let per_level: Vec<Value> = values
        .into_iter()
        .map(|roots| compact(roots, "universal", |roots| json!({ "individual": { "roots": roots } })))
        .collect();
    let slice = json!({
        "domainCount": domains.len(),
        "valuesPerLevel": per_level,
        "podCounts": compact(counts, "universal", |counts| json!({ "individual": counts })),
    });
    let slices = if domains.is_empty() { json!([]) } else { json!([slice]) };
    assignment.insert("slices".to_owned(), slices);
    Ok(())
}

/// One value where all are equal, else all of them.
fn compact(values: Vec<Value>, one: &str, all: impl Fn(Vec<Value>) -> Value) -> Value {
    match values.first() {
        Some(first) if values.iter().all(|value| value == first) => json!({ one: first }),
        _ => all(values),
    }
}

fn rename(map: &mut Map<String, Value>, old: &str, new: &str) -> Result<(), ConvertError> {
    let Some(value) = map.remove(old) else { return Ok(()) };
    match map.get(new) {
        Some(known) if *known != value => {
            Err(ConvertError(format!("{old} and {new} are both given; keep {new}")))
        }
        Some(_) => Ok(()),
        None => {
            map.insert(new.to_owned(), value);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn old(kind: &str, spec: &Value, status: &Value) -> Value {
        json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": "x"}, "spec": spec, "status": status})
    }

    fn converted(kind: &str, spec: &Value) -> Value {
        let mut object = old(kind, spec, &json!({}));
        assert!(convert(&mut object).unwrap());
        let once = object.clone();
        assert!(!convert(&mut object).unwrap());
        assert!(!rename_fields(&mut object).unwrap());
        assert_eq!((&object, &object["apiVersion"]), (&once, &json!("kueue.x-k8s.io/v1beta2")));
        object["spec"].clone()
    }

    #[test]
    fn renamed_fields_of_queues_and_cohorts() {
        let queue = json!({
            "cohort": "a", "namespaceSelector": {}, "fieldOfTheFuture": 7,
            "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"},
            "admissionChecks": ["one", "two"],
        });
        let wanted = json!({
            "cohortName": "a", "namespaceSelector": {}, "fieldOfTheFuture": 7,
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"},
            "admissionChecksStrategy": {"admissionChecks": [{"name": "one"}, {"name": "two"}]},
        });
        assert_eq!(converted("ClusterQueue", &queue), wanted);
        let kept = json!({"flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}});
        assert_eq!(converted("ClusterQueue", &kept), kept);
        assert_eq!(converted("Cohort", &json!({"parent": "root"})), json!({"parentName": "root"}));
        let source = json!({"kubeConfig": {"location": "s", "locationType": "Secret"}});
        assert_eq!(converted("MultiKueueCluster", &source), json!({"clusterSource": source}));
        assert_eq!(converted("LocalQueue", &json!({"clusterQueue": "q"})), json!({"clusterQueue": "q"}));
    }

    #[test]
    fn a_workloads_class_is_a_reference() {
        for (source, group, kind) in [
            ("kueue.x-k8s.io/workloadpriorityclass", "kueue.x-k8s.io", "WorkloadPriorityClass"),
            ("scheduling.k8s.io/priorityclass", "scheduling.k8s.io", "PriorityClass"),
        ] {
            let spec = json!({"priorityClassName": "high", "priorityClassSource": source, "priority": 5});
            let wanted =
                json!({"priorityClassRef": {"group": group, "kind": kind, "name": "high"}, "priority": 5});
            assert_eq!(converted("Workload", &spec), wanted);
        }
        let none = json!({"priorityClassName": "", "priorityClassSource": "", "priority": 0});
        assert_eq!(converted("Workload", &none), json!({"priority": 0}));
    }

    #[test]
    fn a_workloads_status_is_rewritten_with_its_topology() {
        let domains = json!([{"values": ["b1", "h1"], "count": 2}, {"values": ["b1", "h2"], "count": 3}]);
        let status = json!({
            "accumulatedPastExexcutionTimeSeconds": 9,
            "admission": {"podSetAssignments": [{"name": "main",
                "topologyAssignment": {"levels": ["block", "host"], "domains": domains}}]},
        });
        let mut object = old("Workload", &json!({}), &status);
        convert(&mut object).unwrap();
        assert_eq!(object["status"]["accumulatedPastExecutionTimeSeconds"], 9);
        let assignment = &object["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"];
        let wanted = json!({"levels": ["block", "host"], "slices": [{
            "domainCount": 2,
            "valuesPerLevel": [{"universal": "b1"}, {"individual": {"roots": ["h1", "h2"]}}],
            "podCounts": {"individual": [2, 3]},
        }]});
        assert_eq!(*assignment, wanted);
        serde_json::from_value::<crate::kueue::TopologyAssignment>(wanted).unwrap();
    }

    #[test]
    fn lists_are_converted_and_what_is_not_kueues_is_left_alone() {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"cohort": "x"}});
        let mut list = json!({"apiVersion": "v1", "kind": "List", "items": [job, old("Cohort", &json!({"parent": "p"}), &json!({}))]});
        assert!(convert(&mut list).unwrap());
        assert_eq!(list["items"][0], job);
        assert_eq!(list["items"][1]["spec"], json!({"parentName": "p"}));
        assert_eq!(list["apiVersion"], "v1");
        let mut other = job;
        assert!(!convert(&mut other).unwrap());
    }

    #[test]
    fn two_values_of_one_field_are_an_error_that_names_them() {
        let both = json!({"cohort": "a", "cohortName": "b"});
        let error = convert(&mut old("ClusterQueue", &both, &json!({}))).unwrap_err().to_string();
        assert!(error.contains("cohort and cohortName"), "{error}");
        let checks = json!({"admissionChecks": ["a"], "admissionChecksStrategy": {"admissionChecks": [{"name": "b"}]}});
        convert(&mut old("ClusterQueue", &checks, &json!({}))).unwrap_err();
    }
}
