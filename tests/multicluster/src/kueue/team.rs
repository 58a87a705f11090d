//! A team: a namespace, and names of its own.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{At, Draft, World, cluster_queue, local_queue, resource_flavor, workload};
use crate::{
    wait,
    work::{BOUND, JobSpec, Jobs, until_workload, workload_of},
};

/// The LocalQueue that [`Team::queue`] makes.
const MAIN: &str = "main";

/// A namespace with queues. Its flavor and its ClusterQueue have the namespace's name.
#[derive(Clone, Debug)]
pub struct Team<'w> {
    world: &'w World,
    name: String,
}

impl<'w> Team<'w> {
    pub(super) fn new(world: &'w World, name: &str) -> Self {
        Self { world, name: name.to_owned() }
    }

    /// The world it is in.
    pub fn world(&self) -> &'w World {
        self.world
    }

    /// Its namespace, its flavor, its ClusterQueue.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A name for a further cluster-scoped object: `kq-035-spot`.
    pub fn named(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.name)
    }

    /// Applies a flavor, a ClusterQueue with this quota and a LocalQueue `main`, and waits until they are active. Every
    /// [`JobSpec`] asks for some memory, so there is plenty of it unless `quotas` says how much.
    pub async fn queue(&self, quotas: &[(&str, &str)]) -> Result<()> {
        let mut quotas = quotas.to_vec();
        if quotas.iter().all(|(resource, _)| *resource != "memory") {
            quotas.push(("memory", "1Ti"));
        }
        self.queue_as(cluster_queue(&self.name, &[(&self.name, &quotas)])).await
    }

    /// The same with another ClusterQueue; its name and that of one of its flavors stay the team's.
    pub async fn queue_as(&self, cluster_queue: Draft) -> Result<()> {
        let queue = local_queue(&self.name, MAIN, &self.name);
        self.world.apply(&[resource_flavor(&self.name), cluster_queue, queue]).await?;
        self.world.condition(&self.cluster_queue(), ("Active", "True", "Ready")).await?;
        self.world.condition(&self.local_queue(), ("Active", "True", "Ready")).await?;
        Ok(())
    }

    /// The team's ClusterQueue.
    pub fn cluster_queue(&self) -> At {
        At::cluster_queue(&self.name)
    }

    /// The team's LocalQueue `main`.
    pub fn local_queue(&self) -> At {
        At::local_queue(&self.name, MAIN)
    }

    /// Jobs of the namespace.
    pub fn jobs(&self) -> Result<Jobs> {
        Jobs::on_hub(self.world.fleet(), &self.name)
    }

    /// Creates a Job in the LocalQueue `main`, unless it names another.
    pub async fn submit(&self, job: &JobSpec) -> Result<()> {
        let labelled = job.object().pointer("/metadata/labels/kueue.x-k8s.io~1queue-name").is_some();
        let job = if labelled { job.clone() } else { job.clone().queue(MAIN) };
        self.jobs()?.create(&job).await?;
        Ok(())
    }

    /// Creates a Workload that no job owns in the LocalQueue `main`, and returns where it is.
    pub async fn submit_workload(&self, name: &str, pod_sets: &[Value]) -> Result<At> {
        self.world.create(&workload(&self.name, name, MAIN, pod_sets)).await?;
        Ok(At::workload(&self.name, name))
    }

    /// Where the Workload of a Job is, once there is one.
    pub async fn workload_of(&self, job: &str) -> Result<At> {
        let what = format!("the Workload of {}/{job}", self.name);
        let found =
            wait::until(&what, BOUND, async || workload_of(self.world.fleet(), &self.name, job).await)
                .await?;
        let name = found.pointer("/metadata/name").and_then(Value::as_str).context("a name")?;
        Ok(At::workload(&self.name, name))
    }

    /// Waits until the Workload of a Job satisfies `wanted`, and returns it.
    pub async fn until_workload_of(
        &self,
        job: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        self.until_workload_within(job, what, BOUND, wanted).await
    }

    /// As [`Team::until_workload_of`], within another bound.
    pub async fn until_workload_within(
        &self,
        job: &str,
        what: &str,
        bound: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        until_workload(self.world.fleet(), (&self.name, job), what, bound, wanted).await
    }
}
