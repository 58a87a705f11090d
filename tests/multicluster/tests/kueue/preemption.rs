//! Who is preempted, for whom, and what is said of it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    kueue::{
        At, Draft, Team, World, admitted, cluster_queue, cohort, condition, has, local_queue, priority_class,
        reason, resource_flavor,
    },
    scenario,
    scenario::Scenario,
    work::{BOUND, JobSpec, is_active, workloads},
};
use serde_json::{Value, json};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        scenario!(kq_078_equal_priority_is_not_preempted).together(),
        scenario!(kq_079_equal_priority_that_came_later_is_preempted).together(),
        scenario!(kq_080_nominal_quota_is_reclaimed_as_the_policy_allows).together(),
        scenario!(kq_081_who_borrows_preempts_only_below_the_threshold).together(),
        scenario!(kq_082_no_more_victims_than_needed).together(),
        scenario!(kq_083_victims_are_taken_in_their_order).together(),
        scenario!(kq_084_only_who_borrows_is_a_victim).together(),
        scenario!(kq_085_quota_of_the_own_part_of_the_tree_is_reclaimed).together(),
        scenario!(kq_086_a_victim_is_told_why_and_for_whom).together(),
        scenario!(kq_087_two_preemptors_evict_a_victim_once).together(),
        scenario!(kq_089_quota_is_kept_for_who_cannot_preempt).together(),
    ]
}

/// A ClusterQueue with the team's flavor, in the team's cohort.
pub(crate) fn member(team: &Team<'_>, suffix: &str, cpu: &str) -> Draft {
    cluster_queue(&team.named(suffix), &[(team.name(), &[("cpu", cpu), ("memory", "1Ti")])])
        .set("/spec/cohortName", json!(team.name()))
}

/// Applies the team's flavor and priority classes, these ClusterQueues and for each a LocalQueue of its name, and waits
/// until they are active.
pub(crate) async fn open(team: &Team<'_>, queues: &[Draft]) -> Result<()> {
    let world = team.world();
    let mut objects = vec![resource_flavor(team.name())];
    for (class, value) in [("low", 10), ("mid", 50), ("high", 100), ("top", 200)] {
        objects.push(priority_class(&team.named(class), value));
    }
    objects.extend_from_slice(queues);
    let mut wanted = Vec::new();
    for queue in queues {
        let name = queue.object()["metadata"]["name"].as_str().context("name")?;
        let local = local_queue(team.name(), name, name);
        wanted.extend([queue.at()?, local.at()?]);
        objects.push(local);
    }
    world.apply(&objects).await?;
    for at in &wanted {
        world.condition(at, ("Active", "True", "Ready")).await?;
    }
    Ok(())
}

/// A Job of one CPU that keeps its quota, in a queue of the team and of a class of it; an empty class is none.
pub(crate) fn job(team: &Team<'_>, queue: &str, name: &str, class: &str) -> JobSpec {
    let job = JobSpec::new(name).queue(&team.named(queue)).cpu("1").run_for("600s");
    if class.is_empty() {
        return job;
    }
    job.set("/metadata/labels", "kueue.x-k8s.io/priority-class", json!(team.named(class)))
}

/// Submits a Job, and waits until it runs.
pub(crate) async fn run(team: &Team<'_>, job: &JobSpec) -> Result<()> {
    team.submit(job).await?;
    team.jobs()?.until(job.name(), "is active", is_active).await?;
    Ok(())
}

/// Runs a Job for two seconds, so that what comes after it is younger; times are compared by the second.
async fn let_time_pass(team: &Team<'_>, queue: &str) -> Result<()> {
    team.submit(&job(team, queue, "between", "").run_for("2s")).await?;
    team.jobs()?.complete("between").await?;
    Ok(())
}

/// Waits until it was decided that a Job waits for quota.
pub(crate) async fn waits(team: &Team<'_>, job: &str) -> Result<()> {
    let waits = |workload: &Value| reason(workload, "QuotaReserved") == "WaitingForQuota";
    team.until_workload_of(job, "waits for quota", waits).await?;
    Ok(())
}

/// Every Job of the team that is or was preempted, with the reason.
pub(crate) async fn victims(team: &Team<'_>) -> Result<BTreeMap<String, String>> {
    let all = workloads(team.world().fleet(), team.name()).await?;
    let told = all.iter().filter(|workload| condition(workload, "Preempted").is_some());
    Ok(told
        .filter_map(|workload| {
            let job = workload.pointer("/metadata/ownerReferences/0/name")?.as_str()?;
            Some((job.to_owned(), reason(workload, "Preempted").to_owned()))
        })
        .collect())
}

/// Checks who was preempted so far, and for which reason.
pub(crate) async fn victims_are(team: &Team<'_>, wanted: &[(&str, &str)]) -> Result<()> {
    let wanted: BTreeMap<String, String> =
        wanted.iter().map(|(job, cause)| ((*job).to_owned(), (*cause).to_owned())).collect();
    let found = victims(team).await?;
    ensure!(found == wanted, "{}: preempted are {found:?}, not {wanted:?}", team.name());
    Ok(())
}

/// A queue of one CPU in which a younger Job runs, while an older one of the same priority waits.
async fn older_waits<'w>(world: &'w World, name: &str, policy: &str) -> Result<Team<'w>> {
    let team = world.team(name).await?;
    let queue = member(&team, "q", "1").set("/spec/preemption", json!({"withinClusterQueue": policy}));
    let held = local_queue(name, "held", &team.named("q")).set("/spec/stopPolicy", json!("Hold"));
    open(&team, &[queue]).await?;
    world.apply(&[held]).await?;
    world.condition(&At::local_queue(name, "held"), ("Active", "False", "Stopped")).await?;
    team.submit(&job(&team, "q", "older", "mid").queue("held")).await?;
    team.workload_of("older").await?;
    let_time_pass(&team, "q").await?;
    run(&team, &job(&team, "q", "younger", "mid")).await?;
    world.patch(&At::local_queue(name, "held"), &json!({"spec": {"stopPolicy": "None"}})).await?;
    Ok(team)
}

async fn kq_078_equal_priority_is_not_preempted(world: &World) -> Result<()> {
    let team = older_waits(world, "kq-078", "LowerPriority").await?;
    waits(&team, "older").await?;
    victims_are(&team, &[]).await?;
    team.submit(&job(&team, "q", "urgent", "high")).await?;
    team.until_workload_of("urgent", "is admitted", admitted).await?;
    victims_are(&team, &[("younger", "InClusterQueue")]).await
}

async fn kq_079_equal_priority_that_came_later_is_preempted(world: &World) -> Result<()> {
    let team = older_waits(world, "kq-079", "LowerOrNewerEqualPriority").await?;
    team.until_workload_of("older", "is admitted", admitted).await?;
    victims_are(&team, &[("younger", "InClusterQueue")]).await?;
    waits(&team, "younger").await
}

async fn kq_080_nominal_quota_is_reclaimed_as_the_policy_allows(world: &World) -> Result<()> {
    tokio::try_join!(
        reclaims(world, "kq-080-never", "Never", None),
        reclaims(world, "kq-080-lower", "LowerPriority", Some("urgent")),
        reclaims(world, "kq-080-any", "Any", Some("modest")),
    )?;
    Ok(())
}

/// A queue's quota is lent to a Job of a high priority; `first` is who gets it back.
async fn reclaims(world: &World, name: &str, policy: &str, first: Option<&str>) -> Result<()> {
    let team = world.team(name).await?;
    let owner = member(&team, "owner", "1").set("/spec/preemption", json!({"reclaimWithinCohort": policy}));
    open(&team, &[owner, member(&team, "borrower", "0")]).await?;
    run(&team, &job(&team, "borrower", "borrows", "high")).await?;
    for (claim, class) in [("modest", "low"), ("urgent", "top")] {
        team.submit(&job(&team, "owner", claim, class)).await?;
        if first == Some(claim) {
            team.until_workload_of(claim, "is admitted", admitted).await?;
            return victims_are(&team, &[("borrows", "InCohortReclamation")]).await;
        }
        waits(&team, claim).await?;
        victims_are(&team, &[]).await?;
    }
    Ok(())
}

async fn kq_081_who_borrows_preempts_only_below_the_threshold(world: &World) -> Result<()> {
    let team = world.team("kq-081").await?;
    let rules = json!({
        "reclaimWithinCohort": "Any",
        "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 10},
    });
    let owner = |suffix: &str| member(&team, suffix, "1").set("/spec/preemption", rules.clone());
    open(&team, &[owner("one"), owner("two"), member(&team, "other", "1"), member(&team, "spare", "1")])
        .await?;
    run(&team, &job(&team, "other", "mid", "mid").cpu("2")).await?;
    for name in ["low-1", "low-2"] {
        run(&team, &job(&team, "other", name, "low")).await?;
    }
    team.submit(&job(&team, "one", "wide", "high").cpu("2")).await?;
    team.until_workload_of("wide", "is admitted", admitted).await?;
    let lows = [("low-1", "InCohortReclaimWhileBorrowing"), ("low-2", "InCohortReclaimWhileBorrowing")];
    victims_are(&team, &lows).await?;
    team.submit(&job(&team, "one", "wider", "high")).await?;
    waits(&team, "wider").await?;
    victims_are(&team, &lows).await?;
    // The other owner needs not borrow.
    team.submit(&job(&team, "two", "claims", "high")).await?;
    team.until_workload_of("claims", "is admitted", admitted).await?;
    // What is left over may be enough for one of the low ones.
    let found = victims(&team).await?;
    let reclaimed = found.get("mid").is_some_and(|cause| cause == "InCohortReclamation");
    ensure!(reclaimed && !found.contains_key("wide"), "preempted are {found:?}");
    Ok(())
}

async fn kq_082_no_more_victims_than_needed(world: &World) -> Result<()> {
    let team = world.team("kq-082").await?;
    let queue =
        member(&team, "q", "6").set("/spec/preemption", json!({"withinClusterQueue": "LowerPriority"}));
    open(&team, &[queue]).await?;
    for (name, class, cpu) in [("small-1", "low", "1"), ("small-2", "low", "1"), ("large", "mid", "4")] {
        run(&team, &job(&team, "q", name, class).cpu(cpu)).await?;
    }
    // The small ones come first among the victims, and do not help.
    team.submit(&job(&team, "q", "urgent", "high").cpu("4")).await?;
    team.until_workload_of("urgent", "is admitted", admitted).await?;
    victims_are(&team, &[("large", "InClusterQueue")]).await
}

/// Others' before the own, lower priorities before higher ones, the latest first.
async fn kq_083_victims_are_taken_in_their_order(world: &World) -> Result<()> {
    let team = world.team("kq-083").await?;
    let rules = json!({"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"});
    let own = member(&team, "own", "4").set("/spec/preemption", rules);
    open(&team, &[own, member(&team, "other", "0")]).await?;
    run(&team, &job(&team, "own", "lowest", "low")).await?;
    run(&team, &job(&team, "own", "old", "mid")).await?;
    let_time_pass(&team, "own").await?;
    run(&team, &job(&team, "own", "new", "mid")).await?;
    run(&team, &job(&team, "other", "foreign", "high")).await?;
    let order = [("foreign", "InCohortReclamation"), ("lowest", "InClusterQueue"), ("new", "InClusterQueue")];
    for count in 1..=order.len() {
        let name = format!("urgent-{count}");
        team.submit(&job(&team, "own", &name, "high")).await?;
        team.until_workload_of(&name, "is admitted", admitted).await?;
        victims_are(&team, order.get(..count).context("order")?).await?;
    }
    Ok(())
}

async fn kq_084_only_who_borrows_is_a_victim(world: &World) -> Result<()> {
    let team = world.team("kq-084").await?;
    let owner = member(&team, "owner", "2").set("/spec/preemption", json!({"reclaimWithinCohort": "Any"}));
    open(&team, &[owner, member(&team, "within", "1"), member(&team, "over", "1")]).await?;
    run(&team, &job(&team, "within", "modest", "low")).await?;
    for name in ["over-1", "over-2", "over-3"] {
        run(&team, &job(&team, "over", name, "high")).await?;
    }
    team.submit(&job(&team, "owner", "claims", "mid").cpu("2")).await?;
    team.until_workload_of("claims", "is admitted", admitted).await?;
    let found = victims(&team).await?;
    ensure!(found.len() == 2 && !found.contains_key("modest"), "preempted are {found:?}");
    Ok(())
}

async fn kq_085_quota_of_the_own_part_of_the_tree_is_reclaimed(world: &World) -> Result<()> {
    let team = world.team("kq-085").await?;
    let part = |suffix: &str| {
        cohort(&team.named(suffix), &[(team.name(), &[("cpu", "1"), ("memory", "1Ti")])])
            .set("/spec/parentName", json!(team.name()))
    };
    let within = |queue: Draft, suffix: &str| queue.set("/spec/cohortName", json!(team.named(suffix)));
    let own = within(member(&team, "own", "0"), "left")
        .set("/spec/preemption", json!({"reclaimWithinCohort": "Any"}));
    world.apply(&[resource_flavor(team.name()), part("left"), part("right")]).await?;
    open(&team, &[own, within(member(&team, "out", "0"), "right")]).await?;
    for name in ["out-1", "out-2"] {
        run(&team, &job(&team, "out", name, "high")).await?;
    }
    team.submit(&job(&team, "own", "claims", "low")).await?;
    team.until_workload_of("claims", "is admitted", admitted).await?;
    let first = victims(&team).await?;
    ensure!(first.len() == 1 && first.values().all(|cause| cause == "InCohortReclamation"), "{first:?}");
    // Their own part's quota is left to the others.
    team.submit(&job(&team, "own", "more", "top")).await?;
    waits(&team, "more").await?;
    let found = victims(&team).await?;
    ensure!(found == first, "{found:?}");
    Ok(())
}

async fn kq_086_a_victim_is_told_why_and_for_whom(world: &World) -> Result<()> {
    let team = world.team("kq-086").await?;
    let queue =
        member(&team, "q", "1").set("/spec/preemption", json!({"withinClusterQueue": "LowerPriority"}));
    open(&team, &[queue]).await?;
    run(&team, &job(&team, "q", "victim", "low")).await?;
    team.submit(&job(&team, "q", "urgent", "high")).await?;
    team.until_workload_of("urgent", "is admitted", admitted).await?;
    let told = |workload: &Value| {
        let names_it = |kind: &str| {
            condition(workload, kind)
                .is_some_and(|condition| condition["message"].to_string().contains("urgent"))
        };
        has(workload, "Evicted", "True")
            && reason(workload, "Evicted") == "Preempted"
            && has(workload, "Preempted", "True")
            && reason(workload, "Preempted") == "InClusterQueue"
            && names_it("Evicted")
            && names_it("Preempted")
    };
    team.until_workload_of("victim", "is told", told).await?;
    let note = team.jobs()?.event("victim", "Preempted", BOUND).await?;
    ensure!(note.contains("urgent"), "{note}");
    Ok(())
}

/// The victim takes its time to stop, so both see it on its way out.
async fn kq_087_two_preemptors_evict_a_victim_once(world: &World) -> Result<()> {
    let team = world.team("kq-087").await?;
    let owner = |suffix: &str| {
        member(&team, suffix, "1").set("/spec/preemption", json!({"reclaimWithinCohort": "Any"}))
    };
    open(&team, &[owner("one"), owner("two"), member(&team, "borrower", "0")]).await?;
    run(&team, &job(&team, "borrower", "victim", "low").cpu("2").stop_after("3s")).await?;
    let (one, two) = (job(&team, "one", "claim-1", "high"), job(&team, "two", "claim-2", "high"));
    tokio::try_join!(team.submit(&one), team.submit(&two))?;
    for claim in ["claim-1", "claim-2"] {
        team.until_workload_of(claim, "is admitted", admitted).await?;
    }
    victims_are(&team, &[("victim", "InCohortReclamation")]).await?;
    let victim = world.get(&team.workload_of("victim").await?).await?.context("victim")?;
    let evictions = &victim["status"]["schedulingStats"]["evictions"];
    let single = evictions.as_array().is_some_and(|all| all.len() == 1) && evictions[0]["count"] == 1;
    ensure!(single, "{evictions}");
    Ok(())
}

async fn kq_089_quota_is_kept_for_who_cannot_preempt(world: &World) -> Result<()> {
    let team = world.team("kq-089").await?;
    let owner = member(&team, "owner", "2").set("/spec/queueingStrategy", json!("StrictFIFO"));
    open(&team, &[owner, member(&team, "other", "0")]).await?;
    run(&team, &job(&team, "other", "borrows", "low")).await?;
    team.submit(&job(&team, "owner", "large", "high").cpu("2")).await?;
    waits(&team, "large").await?;
    // One CPU is free.
    team.submit(&job(&team, "other", "small", "low")).await?;
    waits(&team, "small").await?;
    team.jobs()?.delete("borrows").await?;
    team.until_workload_of("large", "is admitted", admitted).await?;
    victims_are(&team, &[]).await
}
