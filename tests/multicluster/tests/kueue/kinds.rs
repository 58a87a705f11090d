//! Kinds: what the API server refuses, so that nothing senseless is stored.

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    kueue::{
        Draft, World, admission_check, cluster_queue, cohort, pod_set, refused, resource_flavor, topology,
        workload,
    },
    scenario,
    scenario::Scenario,
};
use serde_json::{Value, json};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        scenario!(kq_001_resources_are_in_the_order_of_their_group).together(),
        scenario!(kq_002_a_resource_and_a_flavor_are_in_one_group_only).together(),
        scenario!(kq_003_nominal_quota_is_given_and_not_negative).together(),
        scenario!(kq_004_limits_need_a_cohort).together(),
        scenario!(kq_013_local_queue_stays_with_its_cluster_queue).together(),
        scenario!(kq_018_levels_change_only_while_the_hostname_is_last).together(),
        scenario!(kq_022_what_quota_was_reserved_for_is_frozen).together(),
        scenario!(kq_029_the_older_version_names_the_command_that_converts).together(),
        scenario!(queues_that_contradict_themselves_are_refused).together(),
        scenario!(flavors_that_contradict_themselves_are_refused).together(),
        scenario!(statuses_that_contradict_themselves_are_refused).together(),
        scenario!(short_names_and_columns_are_those_people_know).together(),
    ]
}

async fn kq_001_resources_are_in_the_order_of_their_group(world: &World) -> Result<()> {
    let good = cluster_queue("kq-001", &[("f", &[("cpu", "1"), ("memory", "1Gi")])]);
    world.create(&good).await?;
    let turned = cluster_queue("kq-001-x", &[("f", &[("cpu", "1"), ("memory", "1Gi")])])
        .set("/spec/resourceGroups/0/coveredResources", json!(["memory", "cpu"]));
    world.refuses("another order", &turned, "in the same order").await
}

/// Two groups with a flavor and a resource each.
fn two_groups(name: &str, first: (&str, &str), second: (&str, &str)) -> Draft {
    let group = |(flavor, resource): (&str, &str)| {
        json!({"coveredResources": [resource], "flavors": [
            {"name": flavor, "resources": [{"name": resource, "nominalQuota": "1"}]}]})
    };
    cluster_queue(name, &[]).set("/spec/resourceGroups", json!([group(first), group(second)]))
}

async fn kq_002_a_resource_and_a_flavor_are_in_one_group_only(world: &World) -> Result<()> {
    world.create(&two_groups("kq-002", ("f", "cpu"), ("g", "memory"))).await?;
    for (name, first, second, why) in [
        ("kq-002-r", ("f", "cpu"), ("g", "cpu"), "a resource may be in one group only"),
        ("kq-002-f", ("f", "cpu"), ("f", "memory"), "a flavor may be in one group only"),
    ] {
        world.refuses(why, &two_groups(name, first, second), why).await?;
    }
    let cohort = cohort("kq-002", &[]).set(
        "/spec/resourceGroups",
        two_groups("x", ("f", "cpu"), ("f", "memory")).object()["spec"]["resourceGroups"].clone(),
    );
    world.refuses("a cohort", &cohort, "a flavor may be in one group only").await
}

async fn kq_003_nominal_quota_is_given_and_not_negative(world: &World) -> Result<()> {
    let queue = |quota: Value| {
        cluster_queue("kq-003", &[("f", &[("cpu", "1")])]).set(
            "/spec/resourceGroups/0/flavors/0/resources/0",
            json!({"name": "cpu", "nominalQuota": quota}),
        )
    };
    for quota in [json!("-1"), json!(-1), Value::Null, json!("many")] {
        world.refuses(&quota.to_string(), &queue(quota), "nominalQuota").await?;
    }
    world.create(&queue(json!(0))).await?;
    Ok(())
}

async fn kq_004_limits_need_a_cohort(world: &World) -> Result<()> {
    const QUOTA: &str = "/spec/resourceGroups/0/flavors/0/resources/0";
    let limited = |limit: &str, amount: &str| {
        cluster_queue(&format!("kq-004-{}", limit.to_lowercase()), &[("f", &[("cpu", "4")])])
            .set(&format!("{QUOTA}/{limit}"), json!(amount))
    };
    for limit in ["borrowingLimit", "lendingLimit"] {
        world.refuses(limit, &limited(limit, "1"), "need cohortName").await?;
        world.create(&limited(limit, "4").set("/spec/cohortName", json!("kq-004"))).await?;
    }
    let lends_more = limited("lendingLimit", "5").set("/spec/cohortName", json!("kq-004"));
    world.refuses("more than it has", &lends_more, "lendingLimit must not be more than nominalQuota").await?;
    let tree = |name: &str| {
        cohort(name, &[("f", &[("cpu", "4")])]).set(&format!("{QUOTA}/lendingLimit"), json!("5"))
    };
    world.refuses("a root that lends", &tree("kq-004-root"), "need parentName").await?;
    world.create(&tree("kq-004-leaf").set("/spec/parentName", json!("kq-004-root"))).await?;
    Ok(())
}

async fn kq_013_local_queue_stays_with_its_cluster_queue(world: &World) -> Result<()> {
    let team = world.team("kq-013").await?;
    team.queue(&[("cpu", "4")]).await?;
    for queue in [json!("another"), Value::Null] {
        let patch = json!({"spec": {"clusterQueue": queue}});
        world.refuses_patch("another ClusterQueue", &team.local_queue(), &patch, "cannot be changed").await?;
    }
    Ok(())
}

async fn kq_018_levels_change_only_while_the_hostname_is_last(world: &World) -> Result<()> {
    const HOST: &str = "kubernetes.io/hostname";
    let levels = |labels: &[&str]| {
        let levels: Vec<Value> = labels.iter().map(|label| json!({"nodeLabel": label})).collect();
        json!({"spec": {"levels": levels}})
    };
    let fixed = topology("kq-018", &["block", "rack"]);
    world.create(&fixed).await?;
    let only_while = "only while kubernetes.io/hostname is the last level";
    world.refuses_patch("no hostname", &fixed.at()?, &levels(&["block"]), only_while).await?;
    let open = topology("kq-018-open", &["rack", HOST]);
    world.create(&open).await?;
    world.patch(&open.at()?, &levels(&["block", "rack", HOST])).await?;
    world.refuses_patch("loses the hostname", &open.at()?, &levels(&["block", "rack"]), only_while).await?;
    world.refuses("twice", &topology("kq-018-x", &["rack", "rack"]), "may appear once").await?;
    world.refuses("not last", &topology("kq-018-x", &[HOST, "rack"]), "may only be the last level").await
}

async fn kq_022_what_quota_was_reserved_for_is_frozen(world: &World) -> Result<()> {
    let team = world.team("kq-022").await?;
    let draft = workload(team.name(), "frozen", "none", &[pod_set("main", 3, &[("cpu", "1")])])
        .set("/spec/priority", json!(1))
        .set(
            "/spec/priorityClassRef",
            json!({"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "low"}),
        );
    world.create(&draft).await?;
    let at = draft.at()?;
    let count = |count: u32| json!({"spec": {"podSets": [pod_set("main", count, &[("cpu", "1")])]}});
    world.patch(&at, &count(4)).await.context("free before")?;
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": "2026-12-01T08:00:00Z"});
    let admission = json!({"clusterQueue": "kq-022", "podSetAssignments": [
        {"name": "main", "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "4"}, "count": 4}]});
    let reserved =
        json!({"conditions": [condition("QuotaReserved"), condition("Admitted")], "admission": admission});
    world.patch_status(&at, &reserved).await?;
    let frozen = "cannot be changed while";
    for (what, spec) in [
        ("queueName", json!({"queueName": "other"})),
        ("no class", json!({"priorityClassRef": null})),
        ("maximumExecutionTimeSeconds", json!({"maximumExecutionTimeSeconds": 60})),
    ] {
        world.refuses_patch(what, &at, &json!({"spec": spec}), frozen).await?;
    }
    for pods in [count(5), count(3)] {
        world.refuses_patch("podSets", &at, &pods, frozen).await?;
    }
    world.patch(&at, &json!({"spec": {"priorityClassRef": {"name": "high"}, "priority": 9}})).await?;
    world.patch(&at, &json!({"spec": {"active": false}})).await?;
    let elastic = json!({"metadata": {"annotations": {"kueue.x-k8s.io/elastic-job": "true"}}});
    world.patch(&at, &elastic).await?;
    world.patch(&at, &count(3)).await.context("an elastic one shrinks")?;
    world.refuses_patch("an elastic one does not grow in place", &at, &count(5), frozen).await
}

async fn kq_029_the_older_version_names_the_command_that_converts(world: &World) -> Result<()> {
    let old = |kind: &str, spec: Value| {
        Draft::new(json!({
            "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": "kq-029"}, "spec": spec,
        }))
    };
    let why = "kubectl fairlead convert -f";
    world.refuses("a ClusterQueue", &old("ClusterQueue", json!({"cohort": "a"})), why).await?;
    world.refuses("a Cohort", &old("Cohort", json!({"parent": "a"})), why).await?;
    world.create(&cohort("kq-029", &[])).await?;
    let listed =
        world.cluster()?.kubectl(&["get", "cohorts.v1beta1.kueue.x-k8s.io", "kq-029", "-o", "name"]).await?;
    ensure!(listed.contains("kq-029"), "what is stored can be read: {listed}");
    Ok(())
}

async fn queues_that_contradict_themselves_are_refused(world: &World) -> Result<()> {
    let queue = |field: &str, value: Value| {
        cluster_queue("kinds-x", &[("f", &[("cpu", "1")])]).set(&format!("/spec/{field}"), value)
    };
    let policy = |mode: &str| json!({"migration": {"mode": mode}});
    let last = |mode: &str, flavor: &str| {
        let limits = json!({"lastAcceptableFlavorName": flavor});
        queue("concurrentAdmissionPolicy", json!({"migration": {"mode": mode, "constraints": limits}}))
    };
    let check = json!([{"name": "c", "onFlavors": ["g"]}]);
    let preference = json!({"preference": "PreemptionOverBorrowing"});
    let borrows = json!({"borrowWithinCohort": {"policy": "LowerPriority"}});
    let strict = queue("queueingStrategy", json!("StrictFIFO"));
    for (draft, why) in [
        (queue("flavorFungibility", preference), "preference may be set only"),
        (queue("preemption", borrows), "must be Never while reclaimWithinCohort"),
        (
            queue("admissionChecksStrategy/admissionChecks", check),
            "onFlavors may name flavors of this queue only",
        ),
        (queue("cohortName", json!("Not A Name")), "cohortName"),
        (queue("fairSharing/weight", json!("500p")), "weight"),
        (queue("fairSharing/weight", json!("1n")), "weight must be 0 or greater than 1n"),
        (queue("resourceGroups/0/coveredResources", json!(["c p u"])), "coveredResources"),
        (
            strict.set("/spec/concurrentAdmissionPolicy", policy("TryPreferredFlavors")),
            "concurrentAdmissionPolicy needs",
        ),
        (last("RetainFirstAdmission", "f"), "needs the mode TryPreferredFlavors"),
        (last("TryPreferredFlavors", "g"), "must be a flavor of this queue"),
        (admission_check("kinds-x", ""), "controllerName"),
    ] {
        world.refuses(why, &draft, why).await?;
    }
    let check = admission_check("kinds-check", "example.com/one");
    world.create(&check).await?;
    let other = json!({"spec": {"controllerName": "example.com/two"}});
    world.refuses_patch("another controller", &check.at()?, &other, "cannot be changed").await
}

async fn flavors_that_contradict_themselves_are_refused(world: &World) -> Result<()> {
    let flavor = |field: &str, value: Value| resource_flavor("kinds-x").set(&format!("/spec/{field}"), value);
    let taint = json!({"key": "gpu", "value": "a", "effect": "NoSchedule"});
    let tolerates = |toleration: Value| flavor("tolerations", json!([toleration]));
    for (draft, why) in [
        (flavor("nodeLabels", json!({"not a key": "x"})), "no label key"),
        (flavor("nodeLabels", json!({"key": "not a value"})), "spec.nodeLabels.key"),
        (flavor("nodeTaints", json!([taint, taint])), "may appear once"),
        (flavor("nodeTaints", json!([{"key": "gpu", "effect": "Sometimes"}])), "effect"),
        (tolerates(json!({"operator": "Equal"})), "operator must be Exists"),
        (tolerates(json!({"key": "k", "operator": "Exists", "value": "v"})), "value must be empty"),
        (tolerates(json!({"key": "k", "effect": "NoSchedule", "tolerationSeconds": 3})), "NoExecute"),
        (flavor("topologyName", json!("t")), "nodeLabels needs at least one label"),
    ] {
        world.refuses(why, &draft, why).await?;
    }
    Ok(())
}

async fn statuses_that_contradict_themselves_are_refused(world: &World) -> Result<()> {
    let team = world.team("kinds-status").await?;
    let draft = workload(team.name(), "w", "none", &[pod_set("main", 3, &[("cpu", "1")])]);
    world.create(&draft).await?;
    let at = draft.at()?;
    let status = |status: Value| {
        let at = at.clone();
        async move { world.patch_status(&at, &status).await }
    };
    let reserved = json!([{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "",
        "lastTransitionTime": "2026-12-01T08:00:00Z"}]);
    refused("no admission", status(json!({"conditions": reserved})).await, "admission must be set")?;
    let admission = |flavor: &str| json!({"clusterQueue": "q", "podSetAssignments": [{"name": "main", "flavors": {"cpu": flavor}}]});
    status(json!({
        "conditions": reserved, "admission": admission("f"), "clusterName": "east",
        "reclaimablePods": [{"name": "main", "count": 2}],
    }))
    .await?;
    for (patch, why) in [
        (json!({"admission": admission("g")}), "an admission cannot be changed"),
        (json!({"clusterName": "west"}), "clusterName cannot be changed"),
        (json!({"nominatedClusterNames": ["west"]}), "exclude each other"),
        (json!({"reclaimablePods": [{"name": "main", "count": 1}]}), "never fall"),
        (json!({"reclaimablePods": null}), "never fall"),
    ] {
        refused(why, status(patch).await, why)?;
    }
    let gone = json!([{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "",
        "lastTransitionTime": "2026-12-01T08:00:00Z"}]);
    let released =
        json!({"conditions": gone, "admission": null, "clusterName": null, "reclaimablePods": null});
    status(released).await.context("an eviction takes everything back in one write")?;
    Ok(())
}

async fn short_names_and_columns_are_those_people_know(world: &World) -> Result<()> {
    let team = world.team("kinds-names").await?;
    team.queue(&[("cpu", "4")]).await?;
    let cluster = world.cluster()?;
    for name in [
        "cq",
        "co",
        "queue",
        "queues",
        "lq",
        "flavor",
        "flavors",
        "rf",
        "topo",
        "kwl",
        "kueueworkload",
        "kueueworkloads",
        "wpc",
        "ac",
        "mkconf",
        "mkc",
    ] {
        cluster.kubectl(&["get", name, "-A"]).await.with_context(|| format!("kubectl get {name}"))?;
    }
    for (args, columns) in [
        (["get", "cq", team.name()], &["COHORT", "PENDING", "ADMITTED"][..]),
        (["get", "lq", "-A"], &["CLUSTERQUEUE", "PENDING", "ADMITTED"][..]),
        (["get", "kwl", "-A"], &["QUEUE", "RESERVED IN", "ADMITTED", "FINISHED"][..]),
    ] {
        let wide = [args.as_slice(), &["-o", "wide"]].concat();
        let printed = cluster.kubectl(&wide).await?;
        ensure!(
            printed.trim().is_empty() || columns.iter().all(|column| printed.contains(column)),
            "{args:?}: {printed}"
        );
    }
    Ok(())
}
