//! A copy: what the Job object on this cluster says of one placement.

use std::sync::Arc;

use fairlead_api::labels;
use fairlead_model::{Epoch, Millis, ObjectKey, PlacementId, RunId, Uid};
use fairlead_session::{CopyStatus, Refusal, Terminal};
use serde_json::{Value, json};

use crate::ports::{Object, Version};

/// The finalizer by which the API server says that pods are still being deleted.
const FOREGROUND: &str = "foregroundDeletion";

/// What we write on everything that we create. Only an object that carries all of it is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// The placement.
    pub(crate) placement: PlacementId,
    /// The run.
    pub(crate) run: RunId,
    /// The promise's epoch.
    pub(crate) epoch: Epoch,
}

impl Stamps {
    /// Reads the stamps of a Job; none when it is not ours.
    pub(crate) fn read(json: &Value) -> Option<Self> {
        let metadata = json.get("metadata")?;
        let stamp = |map: &str, key: &str| metadata.get(map)?.get(key)?.as_str();
        let epoch = stamp("annotations", labels::EPOCH)?.parse().ok()?;
        Some(Self {
            placement: stamp("labels", labels::PLACEMENT)?.into(),
            run: stamp("annotations", labels::RUN)?.into(),
            epoch,
        })
    }

    /// Makes the Job to create from the hub's manifest: under this name, with our stamps and our finalizer, and
    /// without anything by which the manifest could reach beyond the Job itself.
    pub(crate) fn write(&self, mut manifest: Value, key: &ObjectKey) -> Option<Value> {
        let job = manifest.as_object_mut()?;
        job.insert("apiVersion".into(), json!("batch/v1"));
        job.insert("kind".into(), json!("Job"));
        job.remove("status");
        let metadata = job.entry("metadata").or_insert_with(|| json!({}));
        let mut labels = metadata.get("labels").cloned().unwrap_or_else(|| json!({}));
        let mut annotations = metadata.get("annotations").cloned().unwrap_or_else(|| json!({}));
        labels.as_object_mut()?.insert(labels::PLACEMENT.into(), json!(self.placement.as_str()));
        annotations.as_object_mut()?.insert(labels::RUN.into(), json!(self.run.as_str()));
        annotations.as_object_mut()?.insert(labels::EPOCH.into(), json!(self.epoch.to_string()));
        *metadata = json!({
            "namespace": &*key.namespace,
            "name": &*key.name,
            "labels": labels,
            "annotations": annotations,
            "finalizers": [labels::COPY_FINALIZER],
        });
        let spec = job.get_mut("spec")?.as_object_mut()?;
        spec.insert("suspend".into(), json!(false));
        if matches!(
            spec.get("managedBy").and_then(Value::as_str),
            Some(labels::DISPATCH | labels::MULTIKUEUE)
        ) {
            spec.remove("managedBy");
        }
        let template = spec.get_mut("template")?.as_object_mut()?;
        let metadata = template.entry("metadata").or_insert_with(|| json!({})).as_object_mut()?;
        let pod_labels = metadata.entry("labels").or_insert_with(|| json!({})).as_object_mut()?;
        pod_labels.insert(labels::PLACEMENT.into(), json!(self.placement.as_str()));
        Some(manifest)
    }
}

/// The Job of one placement, as it was last seen.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one object, not modes")]
pub(crate) struct Copy {
    /// Its UID.
    pub(crate) uid: Uid,
    /// Its version.
    pub(crate) version: Version,
    /// Its status.
    pub(crate) status: CopyStatus,
    /// All its finalizers.
    pub(crate) finalizers: Vec<Arc<str>>,
    /// It has a deletion timestamp.
    pub(crate) deleting: bool,
    /// `spec.suspend`.
    pub(crate) suspended: bool,
    /// Pods of it have been seen to run, by its status.
    pub(crate) has_run: bool,
    /// The object is gone.
    pub(crate) gone: bool,
    /// We have asked for its deletion.
    pub(crate) ordered: bool,
    /// It was being deleted already when this process saw it first, so pods may have come and gone unseen.
    pub(crate) gap: bool,
    /// The most pods that one status spoke of.
    pub(crate) most_pods: u64,
    /// Why it is being deleted although it was started as ordered.
    pub(crate) rejected: Option<Refusal>,
}

impl Copy {
    /// A Job that is seen for the first time.
    pub(crate) fn new(object: &Object) -> Self {
        let mut copy = Self {
            uid: object.uid.clone(),
            version: 0,
            status: CopyStatus::default(),
            finalizers: Vec::new(),
            deleting: false,
            suspended: false,
            has_run: false,
            gone: false,
            ordered: false,
            gap: false,
            most_pods: 0,
            rejected: None,
        };
        copy.update(object);
        copy.gap = copy.deleting;
        copy
    }

    /// Takes over a newer version of the object; an older one changes nothing.
    pub(crate) fn update(&mut self, object: &Object) {
        if self.gone || object.version <= self.version {
            return;
        }
        self.version = object.version;
        self.read(&object.json);
    }

    /// The object is gone; its last state, where the API server sent it.
    pub(crate) fn end(&mut self, last: Option<&Value>) {
        if let Some(last) = last {
            self.read(last);
        }
        self.gone = true;
    }

    fn read(&mut self, json: &Value) {
        let finalizers = json.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten();
        self.finalizers = finalizers.filter_map(Value::as_str).map(Arc::from).collect();
        self.deleting = json.pointer("/metadata/deletionTimestamp").is_some();
        self.suspended = json.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or(false);
        self.status = status(json);
        let status = &self.status;
        self.has_run |= status.ready > 0 || status.succeeded > 0 || status.failed > 0;
        let pods = [status.active, status.terminating, status.succeeded, status.failed];
        self.most_pods = self.most_pods.max(pods.into_iter().map(u64::from).sum());
    }

    /// Whether our finalizer is on it.
    pub(crate) fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|finalizer| **finalizer == *labels::COPY_FINALIZER)
    }

    /// Whether the API server is still deleting its pods.
    pub(crate) fn deleting_pods(&self) -> bool {
        self.finalizers.iter().any(|finalizer| **finalizer == *FOREGROUND)
    }

    /// The patch that takes our finalizer off this very version.
    pub(crate) fn release(&self) -> Value {
        let rest: Vec<&str> = self
            .finalizers
            .iter()
            .map(|finalizer| &**finalizer)
            .filter(|finalizer| *finalizer != labels::COPY_FINALIZER)
            .collect();
        json!({"metadata": {"resourceVersion": self.version.to_string(), "finalizers": rest}})
    }
}

/// Reads a Job's status.
pub(crate) fn status(json: &Value) -> CopyStatus {
    let field = |name: &str| json.pointer("/status").and_then(|status| status.get(name));
    let count = |name: &str| {
        let number = field(name).and_then(Value::as_u64).unwrap_or(0);
        u32::try_from(number).unwrap_or(u32::MAX)
    };
    let text = |name: &str| field(name).and_then(Value::as_str).unwrap_or_default().into();
    CopyStatus {
        active: count("active"),
        ready: count("ready"),
        terminating: count("terminating"),
        succeeded: count("succeeded"),
        failed: count("failed"),
        completed_indexes: text("completedIndexes"),
        failed_indexes: text("failedIndexes"),
        start_time: time(field("startTime")),
        terminal: terminal(json),
    }
}

/// The result: only a Complete or Failed condition that holds is one.
fn terminal(json: &Value) -> Option<Terminal> {
    let conditions = json.pointer("/status/conditions").and_then(Value::as_array)?;
    conditions.iter().find_map(|condition| {
        let field = |name: &str| condition.get(name).and_then(Value::as_str);
        let succeeded = match field("type")? {
            "Complete" => true,
            "Failed" => false,
            _ => return None,
        };
        (field("status") == Some("True")).then(|| Terminal {
            succeeded,
            reason: field("reason").unwrap_or_default().into(),
            message: field("message").unwrap_or_default().into(),
            completion_time: time(json.pointer("/status/completionTime")),
        })
    })
}

fn time(value: Option<&Value>) -> Option<Millis> {
    let timestamp: jiff::Timestamp = value?.as_str()?.parse().ok()?;
    Some(Millis(timestamp.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps() -> Stamps {
        Stamps { placement: "p3-7".into(), run: "run-1".into(), epoch: Epoch::new(3, 7) }
    }

    #[test]
    fn stamps_are_written_and_read_back_and_nothing_else_reaches_out() {
        let manifest = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "other", "namespace": "elsewhere", "uid": "x", "resourceVersion": "5",
                         "ownerReferences": [{"name": "boss"}], "finalizers": ["someone/else"],
                         "labels": {"app": "a"}, "annotations": {"note": "b"}},
            "spec": {"suspend": true, "managedBy": "fairlead.dev/dispatch", "newer": {"than": "us"},
                     "template": {"spec": {}}},
            "status": {"active": 1},
        });
        let job = stamps().write(manifest, &ObjectKey::new("team-a", "job")).unwrap();
        assert_eq!(Stamps::read(&job), Some(stamps()));
        assert_eq!(
            job["metadata"],
            json!({
                "namespace": "team-a", "name": "job", "finalizers": ["fairlead.dev/copy"],
                "labels": {"app": "a", "fairlead.dev/placement": "p3-7"},
                "annotations": {"note": "b", "fairlead.dev/run": "run-1", "fairlead.dev/epoch": "3.7"},
            })
        );
        assert_eq!(job["spec"]["suspend"], false);
        assert_eq!(job["spec"]["newer"]["than"], "us");
        assert!(job["spec"].get("managedBy").is_none() && job.get("status").is_none());
        assert_eq!(job["spec"]["template"]["metadata"]["labels"]["fairlead.dev/placement"], "p3-7");
    }

    #[test]
    fn a_job_without_every_stamp_is_not_ours() {
        let job = stamps().write(json!({"spec": {"template": {}}}), &ObjectKey::new("a", "b")).unwrap();
        for path in [
            "labels/fairlead.dev~1placement",
            "annotations/fairlead.dev~1run",
            "annotations/fairlead.dev~1epoch",
        ] {
            let mut partial = job.clone();
            *partial.pointer_mut(&format!("/metadata/{path}")).unwrap() = Value::Null;
            assert_eq!(Stamps::read(&partial), None, "{path}");
        }
        assert_eq!(stamps().write(json!({"spec": {}}), &ObjectKey::new("a", "b")), None);
    }

    #[test]
    fn a_result_is_a_condition_that_holds() {
        let with = |type_: &str, status: &str| {
            terminal(&json!({"status": {"conditions": [{"type": type_, "status": status, "reason": "R"}]}}))
        };
        assert!(with("Complete", "True").is_some_and(|end| end.succeeded));
        assert!(with("Failed", "True").is_some_and(|end| !end.succeeded));
        for (type_, status) in
            [("Complete", "False"), ("SuccessCriteriaMet", "True"), ("FailureTarget", "True")]
        {
            assert_eq!(with(type_, status), None, "{type_} {status}");
        }
    }
}
