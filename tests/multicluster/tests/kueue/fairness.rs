//! Fair sharing, on a hub of its own that has it configured.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use fairlead_multicluster::{
    kueue::{At, Draft, Team, World, admitted, cluster_queue, cohort, local_queue, resource_flavor},
    scenario,
    scenario::Scenario,
    wait,
    work::{BOUND, JobSpec, workloads},
};
use serde_json::{Value, json};

use super::{
    preemption::{job, member, open, run, victims_are, waits},
    settings,
};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![scenario!(fair_sharing).within(Duration::from_secs(300))]
}

/// The rows of fair sharing side by side.
async fn fair_sharing(_: &World) -> Result<()> {
    let file = settings::file(&json!({
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        "admissionFairSharing": {"usageHalfLifeTime": "60s", "usageSamplingInterval": "1s"},
    }))?;
    let world = World::start(&["--config", file.path()]).await?;
    tokio::try_join!(
        kq_091_the_lower_share_is_admitted_first(&world),
        kq_092_weights_count(&world),
        kq_094_nominal_quota_is_reclaimed_whatever_the_share(&world),
        kq_095_who_does_not_borrow_goes_first(&world),
        kq_096_shares_are_in_the_status(&world),
        kq_097_who_used_less_lately_goes_first(&world),
    )?;
    Ok(())
}

/// Waits until a Job is admitted, and checks that another still waits.
async fn before(team: &Team<'_>, first: &str, second: &str) -> Result<()> {
    team.until_workload_of(first, "is admitted", admitted).await?;
    let at = team.workload_of(second).await?;
    let second = team.world().get(&at).await?.context("workload")?;
    ensure!(!admitted(&second), "{at} was admitted, and {first} was to come first: {}", second["status"]);
    Ok(())
}

fn weighted(team: &Team<'_>, suffix: &str, weight: &str) -> Draft {
    member(team, suffix, "0").set("/spec/fairSharing/weight", json!(weight))
}

async fn kq_091_the_lower_share_is_admitted_first(world: &World) -> Result<()> {
    let team = world.team("kq-091").await?;
    open(&team, &[member(&team, "pool", "3"), member(&team, "much", "0"), member(&team, "little", "0")])
        .await?;
    run(&team, &job(&team, "much", "much-1", "").cpu("2")).await?;
    run(&team, &job(&team, "pool", "fills", "")).await?;
    // The one that comes later and is less urgent.
    for (queue, name, class) in [("much", "much-2", "high"), ("little", "little-1", "low")] {
        team.submit(&job(&team, queue, name, class)).await?;
        waits(&team, name).await?;
    }
    team.jobs()?.delete("fills").await?;
    before(&team, "little-1", "much-2").await
}

/// Waits until so many Jobs are admitted, none of them `gone`, and returns their names.
async fn holders(team: &Team<'_>, count: usize, gone: &str) -> Result<BTreeSet<String>> {
    let what = format!("{count} Jobs of {} are admitted", team.name());
    wait::until(&what, BOUND, async || {
        let all = workloads(team.world().fleet(), team.name()).await?;
        let names = all.iter().filter(|workload| admitted(workload)).filter_map(|workload| {
            Some(workload.pointer("/metadata/ownerReferences/0/name")?.as_str()?.to_owned())
        });
        let names: BTreeSet<String> = names.collect();
        Ok((names.len() == count && !names.contains(gone)).then_some(names))
    })
    .await
}

/// The only one whose name begins so.
fn only<'n>(names: &'n BTreeSet<String>, prefix: &str) -> Result<&'n str> {
    let mut found = names.iter().filter(|name| name.starts_with(prefix));
    match (found.next(), found.next()) {
        (Some(name), None) => Ok(name),
        _ => bail!("not one {prefix} in {names:?}"),
    }
}

async fn kq_092_weights_count(world: &World) -> Result<()> {
    let team = world.team("kq-092").await?;
    let queues =
        [("one", "1"), ("two", "2"), ("zero", "0")].map(|(name, weight)| weighted(&team, name, weight));
    open(&team, &[&[member(&team, "pool", "3")], &queues[..]].concat()).await?;
    run(&team, &job(&team, "pool", "fills", "").cpu("3")).await?;
    for (queue, class) in [("one", "high"), ("two", "low")] {
        for count in 1..=3 {
            let name = format!("{queue}-{count}");
            team.submit(&job(&team, queue, &name, class)).await?;
            // Those behind it are of its class, so they are not looked at and say nothing.
            team.workload_of(&name).await?;
        }
        waits(&team, &format!("{queue}-1")).await?;
    }
    team.jobs()?.delete("fills").await?;
    let first = holders(&team, 3, "fills").await?;
    let one = only(&first, "one-")?;
    // Weight zero gets what nobody else wants.
    team.submit(&job(&team, "zero", "zero-1", "top")).await?;
    waits(&team, "zero-1").await?;
    team.jobs()?.delete(one).await?;
    let second = holders(&team, 3, one).await?;
    let one = only(&second, "one-")?;
    for queue in ["one", "two"] {
        let at = At::cluster_queue(&team.named(queue));
        world.patch(&at, &json!({"spec": {"stopPolicy": "Hold"}})).await?;
        world.condition(&at, ("Active", "False", "Stopped")).await?;
    }
    team.jobs()?.delete(one).await?;
    only(&holders(&team, 3, one).await?, "zero-")?;
    Ok(())
}

/// Two CPUs of `owner`, which uses one and borrows most of the memory of `pool`; `other` borrows the second CPU.
async fn owner_borrows_memory<'w>(world: &'w World, name: &str, rules: Value) -> Result<Team<'w>> {
    let team = world.team(name).await?;
    let queue = |suffix: &str, cpu: &str, memory: &str| {
        cluster_queue(&team.named(suffix), &[(name, &[("cpu", cpu), ("memory", memory)])])
            .set("/spec/cohortName", json!(name))
    };
    let owner = queue("owner", "2", "0").set("/spec/preemption", rules);
    open(&team, &[owner, queue("other", "0", "0"), queue("pool", "0", "1Gi")]).await?;
    run(&team, &only_cpu(&team, "other", "borrows", "high")).await?;
    run(&team, &job(&team, "owner", "large", "high").memory("1Gi")).await?;
    Ok(team)
}

/// A Job that asks for no memory.
fn only_cpu(team: &Team<'_>, queue: &str, name: &str, class: &str) -> JobSpec {
    let requests = json!({"cpu": "1"});
    job(team, queue, name, class).set("/spec/template/spec/containers/0/resources", "requests", requests)
}

async fn kq_094_nominal_quota_is_reclaimed_whatever_the_share(world: &World) -> Result<()> {
    let team = owner_borrows_memory(world, "kq-094", json!({"reclaimWithinCohort": "Any"})).await?;
    team.submit(&only_cpu(&team, "owner", "claims", "low")).await?;
    team.until_workload_of("claims", "is admitted", admitted).await?;
    victims_are(&team, &[("borrows", "InCohortReclamation")]).await
}

async fn kq_095_who_does_not_borrow_goes_first(world: &World) -> Result<()> {
    let team = owner_borrows_memory(world, "kq-095", json!({"reclaimWithinCohort": "Never"})).await?;
    // The one that comes later, is less urgent, and has the higher share.
    for (queue, name, class) in [("other", "more", "high"), ("owner", "own", "low")] {
        team.submit(&only_cpu(&team, queue, name, class)).await?;
        waits(&team, name).await?;
    }
    team.jobs()?.delete("borrows").await?;
    before(&team, "own", "more").await
}

async fn kq_096_shares_are_in_the_status(world: &World) -> Result<()> {
    let team = world.team("kq-096").await?;
    let part = cohort(&team.named("part"), &[]).set("/spec/parentName", json!(team.name()));
    let inner = weighted(&team, "inner", "2").set("/spec/cohortName", json!(team.named("part")));
    world.apply(&[resource_flavor(team.name()), part.clone()]).await?;
    open(&team, &[member(&team, "pool", "7"), inner, weighted(&team, "zero", "0")]).await?;
    for queue in ["inner", "zero"] {
        run(&team, &job(&team, queue, &format!("{queue}-1"), "")).await?;
    }
    // One of seven is 142.9 thousandths, half of that 71.4.
    let queue = |suffix: &str| At::cluster_queue(&team.named(suffix));
    let shares = [(queue("pool"), 0), (queue("inner"), 72), (part.at()?, 143), (queue("zero"), i64::MAX)];
    for (at, share) in shares {
        let what = format!("has the share {share}");
        world
            .until(&at, &what, |object| object["status"]["fairSharing"]["weightedShare"] == json!(share))
            .await?;
    }
    Ok(())
}

async fn kq_097_who_used_less_lately_goes_first(world: &World) -> Result<()> {
    let team = world.team("kq-097").await?;
    let scope = json!({"admissionMode": "UsageBasedAdmissionFairSharing"});
    open(&team, &[member(&team, "q", "1").set("/spec/admissionScope", scope)]).await?;
    let queues = ["heavy", "light"].map(|name| local_queue(team.name(), name, &team.named("q")));
    world.apply(&queues).await?;
    for queue in &queues {
        world.condition(&queue.at()?, ("Active", "True", "Ready")).await?;
    }
    run(&team, &job(&team, "q", "heavy-1", "").queue("heavy")).await?;
    // The one that comes later and is less urgent.
    for (queue, name, class) in [("heavy", "heavy-2", "high"), ("light", "light-1", "low")] {
        team.submit(&job(&team, "q", name, class).queue(queue)).await?;
        waits(&team, name).await?;
    }
    team.jobs()?.delete("heavy-1").await?;
    before(&team, "light-1", "heavy-2").await
}
