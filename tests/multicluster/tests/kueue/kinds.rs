//! Kinds: validation, defaults, conditions, life and death of queues and flavors.

use anyhow::{Result, ensure};
use fairlead_multicluster::{
    kueue::{World, local_queue},
    scenario,
    scenario::Scenario,
    work::JobSpec,
};
use serde_json::json;

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        scenario!(kq_013_local_queue_stays_with_its_cluster_queue).together(),
        scenario!(kq_014_local_queue_says_why_it_is_not_active).together(),
        scenario!(kq_015_unlabelled_job_goes_to_the_default_queue).together(),
    ]
}

async fn kq_013_local_queue_stays_with_its_cluster_queue(world: &World) -> Result<()> {
    let team = world.team("kq-013").await?;
    team.queue(&[("cpu", "4")]).await?;
    let other = json!({"spec": {"clusterQueue": "another"}});
    world.refuses_patch("another ClusterQueue", &team.local_queue(), &other, "cannot be changed").await
}

async fn kq_014_local_queue_says_why_it_is_not_active(world: &World) -> Result<()> {
    let team = world.team("kq-014").await?;
    let queue = local_queue(team.name(), "dangling", "kq-014-missing");
    world.apply(std::slice::from_ref(&queue)).await?;
    world.condition(&queue.at()?, ("Active", "False", "ClusterQueueDoesNotExist")).await?;
    team.queue(&[("cpu", "4")]).await?;
    world.patch(&team.cluster_queue(), &json!({"spec": {"stopPolicy": "Hold"}})).await?;
    world.condition(&team.local_queue(), ("Active", "False", "ClusterQueueIsInactive")).await?;
    world.patch(&team.cluster_queue(), &json!({"spec": {"stopPolicy": "None"}})).await?;
    world.patch(&team.local_queue(), &json!({"spec": {"stopPolicy": "Hold"}})).await?;
    world.condition(&team.local_queue(), ("Active", "False", "Stopped")).await?;
    world.patch(&team.local_queue(), &json!({"spec": {"stopPolicy": "None"}})).await?;
    world.condition(&team.local_queue(), ("Active", "True", "Ready")).await?;
    Ok(())
}

async fn kq_015_unlabelled_job_goes_to_the_default_queue(world: &World) -> Result<()> {
    let team = world.team("kq-015").await?;
    team.queue(&[("cpu", "4")]).await?;
    world.apply(&[local_queue(team.name(), "default", team.name())]).await?;
    let created = team.jobs()?.create(&JobSpec::new("plain")).await?;
    let queue = created.metadata.labels.as_ref().and_then(|labels| labels.get("kueue.x-k8s.io/queue-name"));
    ensure!(queue.is_some_and(|name| name == "default"), "{queue:?}");
    team.jobs()?.complete("plain").await?;
    Ok(())
}
