//! How much a queue may use, and which flavor a workload gets.

use anyhow::{Result, ensure};
use fairlead_multicluster::{
    kueue::{Draft, Team, World, admitted, cluster_queue, local_queue, resource_flavor},
    scenario,
    scenario::Scenario,
    work::{JobSpec, is_active},
};
use serde_json::{Value, json};

use crate::{
    order::{long, now, of_priority, waits},
    settings,
};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        scenario!(kq_054_borrowing_ends_at_its_limit).together(),
        scenario!(kq_055_lending_ends_at_its_limit).together(),
        scenario!(kq_056_more_than_could_ever_be_had_preempts_nobody).together(),
        scenario!(kq_057_quota_without_end_adds_up).together(),
        scenario!(kq_058_pods_are_counted).together(),
        scenario!(kq_059_flavors_by_order_taint_and_selector).together(),
        scenario!(kq_060_keys_that_the_flavor_lacks_do_not_count).together(),
        scenario!(kq_061_a_taint_that_only_prefers_is_ignored).together(),
        scenario!(kq_062_borrow_or_try_the_next_flavor).together(),
        scenario!(kq_063_preempt_or_try_the_next_flavor).together(),
        scenario!(kq_064_rather_borrow_or_rather_preempt).together(),
        scenario!(kq_068_fewer_pods_when_not_all_fit).together(),
        scenario!(kq_069_excluded_resources_need_no_quota),
        scenario!(kq_070_undeclared_resources_are_ignored),
        scenario!(kq_071_resources_are_counted_as_others),
    ]
}

const ZONE: &str = "example.com/zone";
const LICENSE: &str = "example.com/license";

/// A ClusterQueue in the team's cohort: its flavors in order, each with so many CPUs.
fn queue(team: &Team<'_>, name: &str, flavors: &[(&str, &str)]) -> Draft {
    let quotas: Vec<[(&str, &str); 2]> =
        flavors.iter().map(|(_, cpu)| [("cpu", *cpu), ("memory", "1Ti")]).collect();
    let flavors: Vec<(&str, &[(&str, &str)])> =
        flavors.iter().zip(&quotas).map(|((flavor, _), quotas)| (*flavor, quotas.as_slice())).collect();
    cluster_queue(name, &flavors).set("/spec/cohortName", json!(team.name()))
}

/// Sets `borrowingLimit` or `lendingLimit` for the CPUs of the first flavor.
fn limited(queue: Draft, limit: &str, cpu: &str) -> Draft {
    queue.set(&format!("/spec/resourceGroups/0/flavors/0/resources/0/{limit}"), json!(cpu))
}

/// Adds another ClusterQueue, and a LocalQueue to it.
async fn with_another(team: &Team<'_>, name: &str, queue: Draft) -> Result<()> {
    let local = local_queue(team.name(), name, &team.named(name));
    team.world().apply(&[queue, local.clone()]).await?;
    team.world().condition(&local.at()?, ("Active", "True", "Ready")).await?;
    Ok(())
}

async fn is_admitted(team: &Team<'_>, job: &JobSpec) -> Result<Value> {
    team.submit(job).await?;
    team.until_workload_of(job.name(), "is admitted", admitted).await
}

/// The first pod set's assignment.
fn assigned(workload: &Value) -> &Value {
    &workload["status"]["admission"]["podSetAssignments"][0]
}

/// Submits a Job and checks that it is admitted to this flavor of the team's.
async fn gets(team: &Team<'_>, job: &JobSpec, flavor: &str) -> Result<()> {
    let workload = is_admitted(team, job).await?;
    let got = &assigned(&workload)["flavors"]["cpu"];
    ensure!(*got == json!(team.named(flavor)), "{} got {got} instead of {flavor}", job.name());
    Ok(())
}

fn was_preempted(workload: &Value) -> bool {
    workload["status"]["schedulingStats"]["evictions"][0]["reason"] == "Preempted"
}

/// Checks that a Workload runs on and was never preempted.
async fn is_spared(team: &Team<'_>, job: &str) -> Result<()> {
    let workload = now(team, job).await?;
    ensure!(admitted(&workload) && !was_preempted(&workload), "{job}: {}", workload["status"]);
    Ok(())
}

async fn kq_054_borrowing_ends_at_its_limit(world: &World) -> Result<()> {
    let team = world.team("kq-054").await?;
    let name = team.name();
    world.apply(&[queue(&team, &team.named("lender"), &[(name, "4")])]).await?;
    team.queue_as(limited(queue(&team, name, &[(name, "2")]), "borrowingLimit", "1")).await?;
    for job in ["one", "two", "three"] {
        is_admitted(&team, &long(job, "1")).await?;
    }
    team.submit(&long("four", "1")).await?;
    waits(&team, "four", "WaitingForQuota").await?;
    let counted = |queue: &Value| {
        let resources = queue["status"]["flavorsReservation"][0]["resources"].as_array();
        let wanted = json!({"name": "cpu", "total": "3", "borrowed": "1"});
        resources.is_some_and(|all| all.contains(&wanted))
    };
    world.until(&team.cluster_queue(), "borrows one CPU", counted).await?;
    Ok(())
}

async fn kq_055_lending_ends_at_its_limit(world: &World) -> Result<()> {
    let team = world.team("kq-055").await?;
    let name = team.name();
    team.queue_as(limited(queue(&team, name, &[(name, "4")]), "lendingLimit", "1")).await?;
    with_another(&team, "sibling", queue(&team, &team.named("sibling"), &[(name, "0")])).await?;
    team.submit(&long("two", "2").queue("sibling")).await?;
    waits(&team, "two", "ExceedsMaxQuota").await?;
    is_admitted(&team, &long("all", "4")).await?;
    team.submit(&long("one", "1").queue("sibling")).await?;
    waits(&team, "one", "WaitingForQuota").await?;
    team.jobs()?.delete("all").await?;
    team.until_workload_of("one", "is admitted", admitted).await?;
    Ok(())
}

/// The queue may have 3 CPUs at most. What asks for 4 leaves a lower priority alone, what asks for 2 does not.
async fn kq_056_more_than_could_ever_be_had_preempts_nobody(world: &World) -> Result<()> {
    let team = world.team("kq-056").await?;
    let name = team.name();
    world.apply(&[queue(&team, &team.named("lender"), &[(name, "4")])]).await?;
    let preemption = json!({"withinClusterQueue": "LowerPriority"});
    let own = queue(&team, name, &[(name, "2")]).set("/spec/preemption", preemption);
    team.queue_as(limited(own, "borrowingLimit", "1")).await?;
    is_admitted(&team, &long("low", "2")).await?;
    team.submit(&of_priority(&team, long("large", "4"), 100).await?).await?;
    waits(&team, "large", "ExceedsMaxQuota").await?;
    is_spared(&team, "low").await?;
    is_admitted(&team, &of_priority(&team, long("fits", "2"), 50).await?).await?;
    team.until_workload_of("low", "was preempted", was_preempted).await?;
    Ok(())
}

async fn kq_057_quota_without_end_adds_up(world: &World) -> Result<()> {
    let team = world.team("kq-057").await?;
    let most = i64::MAX.to_string();
    let endless = |name: &str| queue(&team, name, &[(team.name(), &most)]);
    team.queue_as(endless(team.name())).await?;
    with_another(&team, "rich", endless(&team.named("rich"))).await?;
    with_another(&team, "poor", queue(&team, &team.named("poor"), &[(team.name(), "0")])).await?;
    for local in ["main", "rich", "poor"] {
        is_admitted(&team, &long(local, "2").queue(local)).await?;
    }
    Ok(())
}

async fn kq_058_pods_are_counted(world: &World) -> Result<()> {
    let team = world.team("kq-058").await?;
    team.queue(&[("cpu", "64"), ("pods", "3")]).await?;
    team.submit(&long("four", "1").pods(4)).await?;
    waits(&team, "four", "ExceedsMaxQuota").await?;
    let workload = is_admitted(&team, &long("three", "1").pods(3)).await?;
    let used = &assigned(&workload)["resourceUsage"];
    ensure!(used["pods"] == "3", "{used}");
    Ok(())
}

/// A team whose flavors are called so, in this order, with 4 CPUs each; each is a zone of its name, and has the taint.
async fn zones<'w>(world: &'w World, name: &str, zones: &[(&str, Value)]) -> Result<Team<'w>> {
    let team = world.team(name).await?;
    let names: Vec<String> = zones.iter().map(|(zone, _)| team.named(zone)).collect();
    for ((zone, taints), name) in zones.iter().zip(&names) {
        let labels = json!({ZONE: zone});
        let flavor = resource_flavor(name).set("/spec/nodeLabels", labels);
        world.apply(&[flavor.set("/spec/nodeTaints", taints.clone())]).await?;
    }
    let quotas: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "4")).collect();
    team.queue_as(queue(&team, name, &quotas)).await?;
    Ok(team)
}

fn taint(effect: &str) -> Value {
    json!([{"key": "example.com/pool", "value": "a", "effect": effect}])
}

/// A required affinity to nodes of which all of this holds.
fn near(job: JobSpec, expressions: &Value) -> JobSpec {
    let terms = json!({"nodeSelectorTerms": [{"matchExpressions": expressions}]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
    job.set("/spec/template/spec", "affinity", affinity)
}

async fn kq_059_flavors_by_order_taint_and_selector(world: &World) -> Result<()> {
    let flavors = [("tainted", taint("NoSchedule")), ("a", json!([])), ("b", json!([]))];
    let team = zones(world, "kq-059", &flavors).await?;
    gets(&team, &long("plain", "1"), "a").await?;
    let selector = json!({ZONE: "b"});
    gets(&team, &long("selects", "1").set("/spec/template/spec", "nodeSelector", selector), "b").await?;
    let in_b = json!([{"key": ZONE, "operator": "In", "values": ["b"]}]);
    gets(&team, &near(long("near", "1"), &in_b), "b").await?;
    let tolerations = json!([{"key": "example.com/pool", "operator": "Exists"}]);
    let tolerates = long("tolerates", "1").set("/spec/template/spec", "tolerations", tolerations);
    gets(&team, &tolerates, "tainted").await
}

async fn kq_060_keys_that_the_flavor_lacks_do_not_count(world: &World) -> Result<()> {
    let team = zones(world, "kq-060", &[("a", json!([])), ("b", json!([]))]).await?;
    let foreign = json!({"key": "example.com/disk", "operator": "In", "values": ["fast"]});
    gets(&team, &near(long("foreign", "1"), &json!([foreign])), "a").await?;
    let in_b = json!({"key": ZONE, "operator": "In", "values": ["b"]});
    gets(&team, &near(long("both", "1"), &json!([foreign, in_b])), "b").await
}

async fn kq_061_a_taint_that_only_prefers_is_ignored(world: &World) -> Result<()> {
    let team = zones(world, "kq-061", &[("soft", taint("PreferNoSchedule")), ("plain", json!([]))]).await?;
    gets(&team, &long("runs", "1"), "soft").await
}

/// A queue with a first and a second flavor; in its cohort another queue lends of one of them. Workloads of a lower
/// priority may be preempted.
async fn two_flavors<'w>(
    world: &'w World,
    name: &str,
    (first, second): (&str, &str),
    lent: &str,
    fungibility: &Value,
) -> Result<Team<'w>> {
    let team = world.team(name).await?;
    let (one, two) = (team.named("first"), team.named("second"));
    world.apply(&[resource_flavor(&one), resource_flavor(&two)]).await?;
    let lender = team.named("lender");
    world.apply(&[queue(&team, &lender, &[(&team.named(lent), "4")])]).await?;
    let own = queue(&team, name, &[(&one, first), (&two, second)])
        .set("/spec/preemption", json!({"withinClusterQueue": "LowerPriority"}))
        .set("/spec/flavorFungibility", fungibility.clone());
    team.queue_as(own).await?;
    Ok(team)
}

async fn search(team: &Team<'_>, fungibility: &Value) -> Result<()> {
    let patch = json!({"spec": {"flavorFungibility": fungibility}});
    team.world().patch(&team.cluster_queue(), &patch).await?;
    team.world().condition(&team.cluster_queue(), ("Active", "True", "Ready")).await?;
    Ok(())
}

async fn kq_062_borrow_or_try_the_next_flavor(world: &World) -> Result<()> {
    let stop = json!({"whenCanBorrow": "MayStopSearch"});
    let team = two_flavors(world, "kq-062", ("1", "2"), "first", &stop).await?;
    gets(&team, &long("borrows", "2"), "first").await?;
    search(&team, &json!({"whenCanBorrow": "TryNextFlavor"})).await?;
    gets(&team, &long("goes-on", "2"), "second").await
}

/// The first flavor is full of a lower priority: a Job takes the second, and after this change another preempts.
async fn spares_and_then_preempts(team: &Team<'_>, change: &Value) -> Result<()> {
    gets(team, &long("low", "1"), "first").await?;
    team.jobs()?.until("low", "is active", is_active).await?;
    gets(team, &of_priority(team, long("spares", "1"), 100).await?, "second").await?;
    is_spared(team, "low").await?;
    let at = team.workload_of("spares").await?;
    team.jobs()?.delete("spares").await?;
    team.world().gone(&at).await?;
    search(team, change).await?;
    gets(team, &of_priority(team, long("preempts", "1"), 100).await?, "first").await?;
    team.until_workload_of("low", "was preempted", was_preempted).await?;
    Ok(())
}

async fn kq_063_preempt_or_try_the_next_flavor(world: &World) -> Result<()> {
    let next = json!({"whenCanPreempt": "TryNextFlavor"});
    let team = two_flavors(world, "kq-063", ("1", "1"), "second", &next).await?;
    spares_and_then_preempts(&team, &json!({"whenCanPreempt": "MayStopSearch"})).await
}

async fn kq_064_rather_borrow_or_rather_preempt(world: &World) -> Result<()> {
    let rather = |preference: &str| json!({"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor", "preference": preference});
    let team = two_flavors(world, "kq-064", ("1", "0"), "second", &rather("BorrowingOverPreemption")).await?;
    spares_and_then_preempts(&team, &rather("PreemptionOverBorrowing")).await
}

async fn kq_068_fewer_pods_when_not_all_fit(world: &World) -> Result<()> {
    let team = world.team("kq-068").await?;
    team.queue(&[("cpu", "7")]).await?;
    let least = |name: &str, pods: &str| {
        let annotations = json!({"kueue.x-k8s.io/job-min-parallelism": pods});
        long(name, "1").pods(10).set("/metadata", "annotations", annotations)
    };
    team.submit(&least("too-many", "8")).await?;
    waits(&team, "too-many", "ExceedsMaxQuota").await?;
    let workload = is_admitted(&team, &least("runs", "4")).await?;
    ensure!(assigned(&workload)["count"] == 7, "{}", workload["status"]);
    let seven = |job: &k8s_openapi::api::batch::v1::Job| {
        job.spec.as_ref().is_some_and(|spec| spec.parallelism == Some(7) && spec.suspend == Some(false))
    };
    team.jobs()?.until("runs", "runs with seven pods", seven).await?;
    Ok(())
}

/// So much of an extended resource, as the API server wants it.
fn extended(job: JobSpec, resource: &str, quantity: &str) -> JobSpec {
    let container = "/spec/template/spec/containers/0/resources";
    job.request(resource, quantity).set(container, "limits", json!({resource: quantity}))
}

/// A Job with a license, which no quota covers: it waits in this world, and runs with these settings.
async fn needs_no_license(world: &World, name: &str, resources: &Value) -> Result<()> {
    let job = extended(long("licensed", "1"), LICENSE, "1");
    let team = world.team(name).await?;
    team.queue(&[("cpu", "4")]).await?;
    team.submit(&job).await?;
    waits(&team, "licensed", "NoMatchingFlavor").await?;
    let file = settings::file(&json!({"resources": resources}))?;
    let world = World::start(&["--config", file.path()]).await?;
    let team = world.team(name).await?;
    team.queue(&[("cpu", "4")]).await?;
    let workload = is_admitted(&team, &job).await?;
    let used = &assigned(&workload)["resourceUsage"];
    ensure!(used["cpu"] == "1" && used[LICENSE].is_null(), "{used}");
    Ok(())
}

async fn kq_069_excluded_resources_need_no_quota(world: &World) -> Result<()> {
    needs_no_license(world, "kq-069", &json!({"excludeResourcePrefixes": ["example.com/"]})).await
}

async fn kq_070_undeclared_resources_are_ignored(world: &World) -> Result<()> {
    needs_no_license(world, "kq-070", &json!({"quotaCheckStrategy": "IgnoreUndeclared"})).await
}

/// Two pods with two slices and three CPUs each: memory is 5 for each slice and CPU, credits are 2 for each CPU.
async fn kq_071_resources_are_counted_as_others(_: &World) -> Result<()> {
    let (slice, memory, credits) = ("example.com/slice", "example.com/gpu-memory", "example.com/credits");
    let transformations = json!([
        {"input": slice, "strategy": "Replace", "multiplyBy": "cpu", "outputs": {memory: 5}},
        {"input": "cpu", "strategy": "Retain", "outputs": {credits: 2}},
    ]);
    let file = settings::file(&json!({"resources": {"transformations": transformations}}))?;
    let world = World::start(&["--config", file.path()]).await?;
    let team = world.team("kq-071").await?;
    team.queue(&[("cpu", "64"), (memory, "100"), (credits, "100")]).await?;
    let job = extended(long("sliced", "3").pods(2), slice, "2");
    let workload = is_admitted(&team, &job).await?;
    let used = &assigned(&workload)["resourceUsage"];
    let counted = (&used[memory], &used[credits], &used["cpu"]);
    ensure!(counted == (&json!("60"), &json!("12"), &json!("6")) && used[slice].is_null(), "{used}");
    team.submit(&extended(long("more", "3").pods(2), slice, "2")).await?;
    waits(&team, "more", "WaitingForQuota").await?;
    Ok(())
}
