//! A light client: one HTTP/2 connection, a bounded number of creates in flight, and one watch.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use fairlead_runtime::{
    Resource,
    client::{ClientSettings, connect},
    watch::{self, Event, Target},
};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{rig::Access, work::JobSpec};

const JOBS: Resource = Resource::new("batch", "v1", "jobs", true);

/// Creates in flight at a time.
const IN_FLIGHT: usize = 16;

/// How long a burst may take.
const BOUND: Duration = Duration::from_secs(300);

/// A client of one API server that watches the Jobs of one namespace.
pub(super) struct LightClient {
    client: Client,
    path: String,
    events: mpsc::Receiver<Event>,
    _watch: DropGuard,
}

impl LightClient {
    /// Connects, and returns when the watch is up.
    pub(super) async fn connect(access: &Access, namespace: &str) -> Result<Self> {
        let settings = ClientSettings {
            kubeconfig: Some(access.path().to_path_buf()),
            context: None,
            user_agent: "bench/1".to_owned(),
        };
        let client = connect(&settings).await?;
        let target = Target { namespace: Some(namespace.into()), ..Target::all(JOBS) };
        let (out, mut events) = mpsc::channel(4096);
        let cancel = CancellationToken::new();
        let (watching, cancelled) = (client.clone(), cancel.clone());
        tokio::spawn(async move { watch::run(watching, target, out, |event| event, cancelled).await });
        while !matches!(events.recv().await.context("the watch ended")?, Event::Synced) {}
        let path = format!("/apis/batch/v1/namespaces/{namespace}/jobs");
        Ok(Self { client, path, events, _watch: cancel.drop_guard() })
    }

    /// Creates a Job.
    pub(super) async fn create(&self, job: &JobSpec) -> Result<()> {
        create(&self.client, &self.path, job).await
    }

    /// Waits until the watch shows this Job.
    pub(super) async fn shows(&mut self, name: &str) -> Result<Instant> {
        loop {
            let next = tokio::time::timeout(BOUND, self.events.recv()).await.context("too long")?;
            if let Event::Upsert(object) = next.context("the watch ended")?
                && &*object.key.name == name
            {
                return Ok(Instant::now());
            }
        }
    }

    /// Waits until the watch shows this Job complete.
    pub(super) async fn completes(&mut self, name: &str) -> Result<()> {
        self.all_complete(BTreeSet::from([name.to_owned()])).await.map(drop)
    }

    /// Submits all Jobs, a bounded number at a time, and returns how long it took from the first create until the
    /// last of them was seen complete.
    pub(super) async fn burst(&mut self, jobs: Vec<JobSpec>) -> Result<Duration> {
        let names: BTreeSet<String> = jobs.iter().map(|job| job.name().to_owned()).collect();
        let (client, path) = (self.client.clone(), self.path.clone());
        let begin = Instant::now();
        let creating = async {
            stream::iter(jobs.iter().map(|job| create(&client, &path, job)))
                .buffer_unordered(IN_FLIGHT)
                .try_collect::<Vec<()>>()
                .await
        };
        let (_, last) = tokio::try_join!(creating, self.all_complete(names))?;
        Ok(last.duration_since(begin))
    }

    async fn all_complete(&mut self, mut names: BTreeSet<String>) -> Result<Instant> {
        let deadline = Instant::now() + BOUND;
        while !names.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            let next = match tokio::time::timeout(left, self.events.recv()).await {
                Ok(next) => next.context("the watch ended")?,
                Err(_elapsed) => {
                    bail!("{} Jobs are not complete, {:?} among them", names.len(), names.first())
                }
            };
            if let Event::Upsert(object) = next
                && complete(&object.json)
            {
                names.remove(&*object.key.name);
            }
        }
        Ok(Instant::now())
    }
}

async fn create(client: &Client, path: &str, job: &JobSpec) -> Result<()> {
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&job.object())?)?;
    client.request_text(request).await.with_context(|| format!("create {}", job.name()))?;
    Ok(())
}

fn complete(job: &Value) -> bool {
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|list| list.iter().any(|one| one["type"] == "Complete" && one["status"] == "True"))
}
