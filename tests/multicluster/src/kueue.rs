//! What the checklist scenarios (`tests/kueue.rs`) share: one hub with home queues, and words for what its users do.
//!
//! A scenario works in a [`Team`]: a namespace of its own, and names for cluster-scoped objects that begin with the
//! team's. What it applies is a [`Draft`], where an object is found is an [`At`]. So most scenarios can run
//! [`together`](crate::scenario::Scenario::together).
//!
//! ```no_run
//! # use fairlead_multicluster::{kueue::{World, admitted}, work::JobSpec};
//! pub(crate) async fn kq_035_a_small_job_passes_a_large_one(world: &World) -> anyhow::Result<()> {
//!     let team = world.team("kq-035").await?;
//!     team.queue(&[("cpu", "4")]).await?;
//!     team.submit(&JobSpec::new("large").cpu("8")).await?;
//!     team.submit(&JobSpec::new("small").cpu("1")).await?;
//!     team.until_workload_of("small", "is admitted", admitted).await?;
//!     Ok(())
//! }
//! ```

mod at;
mod draft;
mod look;
mod team;

pub use at::At;
pub use draft::{
    Draft, admission_check, cluster_queue, cohort, local_queue, pod_set, priority_class, resource_flavor,
    topology, workload,
};
pub use look::{admitted, condition, finished, has, is_condition, reason, reserved};
pub use team::Team;

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::{
    fleet::{Fleet, FleetOptions, apply_all, create_namespace},
    rig::{Cluster, NodeSpec},
    wait,
    work::BOUND,
};

/// A hub without spokes whose own cluster has nodes.
#[derive(Debug)]
pub struct World {
    fleet: Fleet,
}

impl World {
    /// Starts it with four nodes of 64 CPUs, and audit logs. `hub_args` are further arguments of the hub; a scenario
    /// that needs others than its neighbours starts a second world for itself.
    pub async fn start(hub_args: &[&str]) -> Result<Self> {
        let node = |n: u32| NodeSpec::new(&format!("node-{n}"), "64", "256Gi").gpus(8);
        let fleet = Fleet::start(FleetOptions {
            hub_nodes: (1..=4).map(node).collect(),
            audit: true,
            hub_args: hub_args.iter().map(|&arg| arg.to_owned()).collect(),
            ..FleetOptions::default()
        })
        .await?;
        Ok(Self { fleet })
    }

    /// Hub and rig below.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// The hub's own cluster, with `kubectl`.
    pub fn cluster(&self) -> Result<&Cluster> {
        self.fleet.hub_cluster()
    }

    /// A client with an administrator's rights.
    pub fn client(&self) -> Result<Client> {
        self.fleet.hub_client()
    }

    /// Makes a namespace of this name, and a team in it.
    pub async fn team(&self, name: &str) -> Result<Team<'_>> {
        create_namespace(self.cluster()?, name).await?;
        Ok(Team::new(self, name))
    }

    /// Applies objects with kubectl, server-side.
    pub async fn apply(&self, drafts: &[Draft]) -> Result<()> {
        let objects: Vec<Value> = drafts.iter().map(|draft| draft.object().clone()).collect();
        apply_all(self.cluster()?, &objects).await
    }

    /// Creates an object, and returns it as stored.
    pub async fn create(&self, draft: &Draft) -> Result<Value> {
        send(&self.client()?, Method::POST, draft.at()?.collection(), Some(draft.object())).await
    }

    /// The object, if it exists.
    pub async fn get(&self, at: &At) -> Result<Option<Value>> {
        let request = http::Request::get(at.path()).body(Vec::new())?;
        match self.client()?.request::<Value>(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error).with_context(|| format!("get {at}")),
        }
    }

    /// Changes an object by a merge patch; the error is the API server's message.
    pub async fn patch(&self, at: &At, patch: &Value) -> Result<Value> {
        send(&self.client()?, Method::PATCH, at.path(), Some(patch)).await
    }

    /// Changes its status by a merge patch of the status: what other controllers do. Lists are replaced.
    pub async fn patch_status(&self, at: &At, status: &Value) -> Result<Value> {
        let path = format!("{}/status", at.path());
        send(&self.client()?, Method::PATCH, &path, Some(&json!({"status": status}))).await
    }

    /// Deletes an object, and does not wait.
    pub async fn delete(&self, at: &At) -> Result<()> {
        send(&self.client()?, Method::DELETE, at.path(), None).await?;
        Ok(())
    }

    /// Waits until an object is gone.
    pub async fn gone(&self, at: &At) -> Result<()> {
        wait::until_true(&format!("{at} is gone"), BOUND, async || Ok(self.get(at).await?.is_none())).await
    }

    /// Waits until an object satisfies `wanted`, and returns it.
    pub async fn until(&self, at: &At, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        self.until_within(at, what, BOUND, wanted).await
    }

    /// As [`World::until`], within another bound.
    pub async fn until_within(
        &self,
        at: &At,
        what: &str,
        bound: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        wait::until(&format!("{at} {what}"), bound, async || match self.get(at).await? {
            Some(object) if wanted(&object) => Ok(Some(object)),
            Some(object) => bail!("spec {} status {}", object["spec"], object["status"]),
            None => Ok(None),
        })
        .await
    }

    /// Waits until a condition has this status and reason, and belongs to the object's present generation.
    pub async fn condition(&self, at: &At, (kind, status, reason): (&str, &str, &str)) -> Result<Value> {
        let what = format!("has {kind}={status} with {reason}");
        self.until(at, &what, |object| is_condition(object, (kind, status, reason))).await
    }

    /// Checks that creating it is refused, and that the refusal says `why`.
    pub async fn refuses(&self, what: &str, draft: &Draft, why: &str) -> Result<()> {
        refused(what, self.create(draft).await, why)
    }

    /// Checks that a change by merge patch is refused, and that the refusal says `why`.
    pub async fn refuses_patch(&self, what: &str, at: &At, patch: &Value, why: &str) -> Result<()> {
        refused(what, self.patch(at, patch).await, why)
    }
}

/// Checks that a request was refused, and that the refusal says `why`.
pub fn refused(what: &str, answer: Result<Value>, why: &str) -> Result<()> {
    match answer {
        Ok(_) => bail!("{what}: accepted"),
        Err(error) => {
            let message = format!("{error:#}");
            ensure!(message.contains(why), "{what}: refused, but not with {why:?}: {message}");
            Ok(())
        }
    }
}

/// A request to the API server: the answer, or the message of its refusal as the error.
async fn send(client: &Client, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let bytes = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
    let request =
        http::Request::builder().method(&method).uri(path).header("content-type", kind).body(bytes)?;
    match client.request::<Value>(request).await {
        Ok(answer) => Ok(answer),
        Err(kube::Error::Api(status)) => bail!("{}", status.message),
        Err(error) => Err(error).with_context(|| format!("{method} {path}")),
    }
}
