//! What users do on a hub: queues, Jobs, and waiting for what becomes of them. Shared by scenarios, demo and benches.

mod copies;
mod job;
mod queue;

pub use copies::{CopyWrite, copies_created, copy_writes};
pub use job::JobSpec;
pub use queue::{DISPATCH_CHECK, Queue, dispatch_check};

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::{batch::v1::Job, core::v1::ObjectReference, events::v1::Event};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::Value;

use crate::{fleet::Fleet, wait};

/// Real work takes a second or two; a loaded machine more.
pub const BOUND: Duration = Duration::from_secs(60);

/// Jobs of one namespace on one API server.
#[derive(Clone)]
pub struct Jobs {
    namespace: String,
    client: Client,
}

impl std::fmt::Debug for Jobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jobs").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Jobs {
    /// On the hub.
    pub fn on_hub(fleet: &Fleet, namespace: &str) -> Result<Self> {
        Ok(Self { namespace: namespace.to_owned(), client: fleet.hub_client()? })
    }

    /// On a spoke.
    pub fn on_spoke(fleet: &Fleet, spoke: &str, namespace: &str) -> Result<Self> {
        Ok(Self { namespace: namespace.to_owned(), client: fleet.spoke_cluster(spoke)?.client() })
    }

    /// The typed API.
    pub fn api(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates a Job.
    pub async fn create(&self, job: &JobSpec) -> Result<Job> {
        let object: Job = serde_json::from_value(job.object())?;
        self.api()
            .create(&PostParams::default(), &object)
            .await
            .with_context(|| format!("create Job {}/{}", self.namespace, job.name()))
    }

    /// The Job, if it exists.
    pub async fn get(&self, name: &str) -> Result<Option<Job>> {
        Ok(self.api().get_opt(name).await?)
    }

    /// Every Job of the namespace.
    pub async fn list(&self) -> Result<Vec<Job>> {
        Ok(self.api().list(&ListParams::default()).await?.items)
    }

    /// Deletes a Job as kubectl does by default: its dependents go in the background.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.api()
            .delete(name, &DeleteParams::background())
            .await
            .with_context(|| format!("delete Job {name}"))?;
        Ok(())
    }

    /// Waits until the Job satisfies `wanted`, and returns it.
    pub async fn until(&self, name: &str, what: &str, wanted: impl Fn(&Job) -> bool) -> Result<Job> {
        self.until_within(name, what, BOUND, wanted).await
    }

    /// As [`Jobs::until`], within another bound.
    pub async fn until_within(
        &self,
        name: &str,
        what: &str,
        bound: Duration,
        wanted: impl Fn(&Job) -> bool,
    ) -> Result<Job> {
        let sentence = format!("Job {}/{name} {what}", self.namespace);
        wait::until(&sentence, bound, async || Ok(self.get(name).await?.filter(&wanted))).await
    }

    /// Waits until the Job is complete.
    pub async fn complete(&self, name: &str) -> Result<Job> {
        self.until(name, "is complete", |job| has_condition(job, "Complete")).await
    }

    /// Waits until the Job is gone.
    pub async fn gone(&self, name: &str, bound: Duration) -> Result<()> {
        let what = format!("Job {}/{name} is gone", self.namespace);
        wait::until_true(&what, bound, async || Ok(self.get(name).await?.is_none())).await
    }

    /// Waits until an Event with this reason is on the Job, and returns its note.
    pub async fn event(&self, name: &str, reason: &str, bound: Duration) -> Result<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let about = |regarding: Option<&ObjectReference>| {
            regarding.is_some_and(|object| {
                object.kind.as_deref() == Some("Job") && object.name.as_deref() == Some(name)
            })
        };
        let what = format!("Job {}/{name} has an Event {reason}", self.namespace);
        wait::until(&what, bound, async || {
            let all = events.list(&ListParams::default()).await?;
            let found = all
                .items
                .into_iter()
                .find(|event| event.reason.as_deref() == Some(reason) && about(event.regarding.as_ref()));
            Ok(found.map(|event| event.note.unwrap_or_default()))
        })
        .await
    }
}

/// Whether a condition of a Job is true.
pub fn has_condition(job: &Job, wanted: &str) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == wanted && condition.status == "True")
}

/// Whether a Job is active: at least one pod is pending or running.
pub fn is_active(job: &Job) -> bool {
    job.status.as_ref().and_then(|status| status.active).unwrap_or(0) > 0
}

/// The Workloads of one namespace on the hub, as raw JSON.
pub async fn workloads(fleet: &Fleet, namespace: &str) -> Result<Vec<Value>> {
    let path = format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads");
    let request = http::Request::get(path).body(Vec::new())?;
    let mut list: Value = fleet.hub_client()?.request(request).await?;
    Ok(list.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default())
}

/// The Workload of a Job, once there is one.
pub async fn workload_of(fleet: &Fleet, namespace: &str, job: &str) -> Result<Option<Value>> {
    let owned = |workload: &Value| {
        workload.pointer("/metadata/ownerReferences/0/name").is_some_and(|name| name == job)
    };
    Ok(workloads(fleet, namespace).await?.into_iter().find(owned))
}

/// Waits until the Workload of a Job satisfies `wanted`, and returns it.
pub async fn until_workload(
    fleet: &Fleet,
    (namespace, job): (&str, &str),
    what: &str,
    bound: Duration,
    wanted: impl Fn(&Value) -> bool,
) -> Result<Value> {
    let sentence = format!("the Workload of {namespace}/{job} {what}");
    wait::until(&sentence, bound, async || {
        let workload = workload_of(fleet, namespace, job).await?;
        match workload {
            Some(workload) if wanted(&workload) => Ok(Some(workload)),
            Some(workload) => anyhow::bail!("status {}", workload.get("status").unwrap_or(&Value::Null)),
            None => Ok(None),
        }
    })
    .await
}

/// The spokes on which a Job of this name exists.
pub async fn spokes_with(fleet: &Fleet, namespace: &str, job: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for spoke in fleet.spokes() {
        if Jobs::on_spoke(fleet, spoke.name(), namespace)?.get(job).await?.is_some() {
            found.push(spoke.name().to_owned());
        }
    }
    Ok(found)
}

/// Waits until a Job of this name exists on some spoke, and returns the spoke's name.
pub async fn placed(fleet: &Fleet, namespace: &str, job: &str) -> Result<String> {
    wait::until(&format!("{namespace}/{job} is on a spoke"), BOUND, async || {
        Ok(spokes_with(fleet, namespace, job).await?.into_iter().next())
    })
    .await
}
