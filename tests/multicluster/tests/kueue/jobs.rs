//! Jobs: what is made of one, how it is started and stopped in place, and what its user may change.

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    kueue::{
        At, Draft, Team, World, admitted, cluster_queue, has, local_queue, pod_set, priority_class, reason,
        resource_flavor,
    },
    scenario,
    scenario::Scenario,
    work::{BOUND, JobSpec},
};
use serde_json::{Value, json};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        scenario!(kq_016_flavor_labels_and_tolerations_come_and_go).together(),
        scenario!(kq_019_priority_follows_its_class).together(),
        scenario!(kq_020_priority_of_the_pods_counts_without_a_class).together(),
        scenario!(kq_049_requests_above_limits_wait).together(),
        scenario!(kq_068_job_starts_with_fewer_pods).together(),
        scenario!(kq_076_overhead_and_defaults_are_part_of_the_request).together(),
        scenario!(kq_077_sidecars_and_pod_level_resources_count).together(),
        scenario!(kq_118_finished_pods_give_quota_back).together(),
        scenario!(kq_159_jobs_of_a_cron_job_are_queued_one_by_one).together(),
        scenario!(kq_160_parts_of_other_jobs_have_no_workload).together(),
        scenario!(kq_162_job_adopts_the_workload_that_it_names).together(),
        scenario!(kq_163_job_may_change_while_suspended_and_starts_anew_when_running).together(),
        scenario!(kq_164_job_may_change_its_queue_while_suspended).together(),
        scenario!(kq_171_pods_name_their_queues).together(),
        scenario!(kq_173_completions_follow_the_parallelism).together(),
    ]
}

fn at<'a>(object: &'a Value, pointer: &str) -> &'a Value {
    object.pointer(pointer).unwrap_or(&Value::Null)
}

fn job(team: &Team<'_>, name: &str) -> At {
    At::job(team.name(), name)
}

/// A Job whose pods run until they are stopped.
fn long(name: &str) -> JobSpec {
    JobSpec::new(name).run_for("1h")
}

/// Submits a Job, and checks how much CPU is charged for it.
async fn charged(team: &Team<'_>, spec: &JobSpec, cpu: &str) -> Result<()> {
    team.submit(spec).await?;
    let workload = team.until_workload_of(spec.name(), "is admitted", admitted).await?;
    let usage = at(&workload, "/status/admission/podSetAssignments/0/resourceUsage/cpu");
    ensure!(usage == cpu, "{usage} is charged, not {cpu}");
    Ok(())
}

async fn deactivate(team: &Team<'_>, name: &str) -> Result<()> {
    let workload = team.workload_of(name).await?;
    team.world().patch(&workload, &json!({"spec": {"active": false}})).await?;
    Ok(())
}

async fn kq_016_flavor_labels_and_tolerations_come_and_go(world: &World) -> Result<()> {
    let team = world.team("kq-016").await?;
    let toleration = json!({"key": "spot", "operator": "Exists", "effect": "NoSchedule"});
    world
        .apply(&[resource_flavor(team.name())
            .set("/spec/nodeLabels/kubernetes.io~1os", json!("linux"))
            .set("/spec/tolerations", json!([toleration]))])
        .await?;
    let quota: &[(&str, &str)] = &[("cpu", "4"), ("memory", "1Ti")];
    let queue = cluster_queue(team.name(), &[(team.name(), quota)]);
    world.apply(&[queue, local_queue(team.name(), "main", team.name())]).await?;
    let selector = json!({"kubernetes.io/arch": "amd64"});
    team.submit(&long("a").set("/spec/template/spec", "nodeSelector", selector.clone())).await?;
    let running = world.until(&job(&team, "a"), "runs", |job| at(job, "/status/active") == 1).await?;
    let pod = at(&running, "/spec/template/spec");
    ensure!(at(pod, "/nodeSelector/kubernetes.io~1os") == "linux", "{pod}");
    ensure!(at(pod, "/tolerations/0/key") == "spot", "{pod}");
    deactivate(&team, "a").await?;
    world
        .until(&job(&team, "a"), "is as its user wrote it", |job| {
            at(job, "/spec/suspend") == true
                && at(job, "/spec/template/spec/nodeSelector") == &selector
                && at(job, "/spec/template/spec/tolerations").is_null()
                && at(job, "/spec/template/metadata/annotations/kueue.x-k8s.io~1workload").is_null()
        })
        .await?;
    Ok(())
}

async fn kq_019_priority_follows_its_class(world: &World) -> Result<()> {
    let team = world.team("kq-019").await?;
    team.queue(&[("cpu", "1")]).await?;
    let (low, high) = (team.named("low"), team.named("high"));
    world.apply(&[priority_class(&low, 10), priority_class(&high, 20)]).await?;
    let with = |name: &str, class: &str| {
        long(name).cpu("1").set("/metadata/labels", "kueue.x-k8s.io/priority-class", json!(class))
    };
    team.submit(&long("first").cpu("1")).await?;
    team.until_workload_of("first", "is admitted", admitted).await?;
    team.submit(&with("above", &high)).await?;
    team.submit(&with("below", &low)).await?;
    team.until_workload_of("below", "has priority 10", |workload| at(workload, "/spec/priority") == 10)
        .await?;
    world.apply(&[priority_class(&low, 30)]).await?;
    team.until_workload_of("below", "has priority 30", |workload| at(workload, "/spec/priority") == 30)
        .await?;
    team.jobs()?.delete("first").await?;
    team.until_workload_of("below", "overtakes", admitted).await?;
    let waiting = team.until_workload_of("above", "waits", |_| true).await?;
    ensure!(!admitted(&waiting), "both were admitted");
    Ok(())
}

async fn kq_020_priority_of_the_pods_counts_without_a_class(world: &World) -> Result<()> {
    let team = world.team("kq-020").await?;
    team.queue(&[("cpu", "4")]).await?;
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": team.named("pods")}, "value": 77});
    world.apply(&[Draft::new(class)]).await?;
    let name = json!(team.named("pods"));
    team.submit(&long("a").set("/spec/template/spec", "priorityClassName", name.clone())).await?;
    let workload = team
        .until_workload_of("a", "has priority 77", |workload| at(workload, "/spec/priority") == 77)
        .await?;
    ensure!(at(&workload, "/spec/priorityClassRef/name") == &name, "{workload}");
    ensure!(at(&workload, "/spec/priorityClassRef/kind") == "PriorityClass", "{workload}");
    Ok(())
}

async fn kq_049_requests_above_limits_wait(world: &World) -> Result<()> {
    let team = world.team("kq-049").await?;
    team.queue(&[("cpu", "8")]).await?;
    let range = json!({"apiVersion": "v1", "kind": "LimitRange",
        "metadata": {"name": "most", "namespace": team.name()},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "1"}}]}});
    world.apply(&[Draft::new(range)]).await?;
    team.submit(&JobSpec::new("large").cpu("3").set(
        "/spec/template/spec/containers/0/resources",
        "limits",
        json!({"cpu": "4"}),
    ))
    .await?;
    team.until_workload_of("large", "says why it waits", |workload| {
        has(workload, "QuotaReserved", "False")
            && at(workload, "/status/verdict/code") == "RequestsExceedLimits"
    })
    .await?;
    team.submit(&JobSpec::new("small").cpu("1")).await?;
    team.until_workload_of("small", "is admitted", admitted).await?;
    Ok(())
}

async fn kq_068_job_starts_with_fewer_pods(world: &World) -> Result<()> {
    let team = world.team("kq-068").await?;
    team.queue(&[("cpu", "7")]).await?;
    let least = |count: &str| {
        let annotations = json!({"kueue.x-k8s.io/job-min-parallelism": count});
        long("a").pods(10).cpu("1").set("/metadata", "annotations", annotations)
    };
    let wrong = Draft::new(least("10").queue("main").object()).set("/metadata/namespace", json!(team.name()));
    world.refuses("as many pods as there are", &wrong, "below the parallelism").await?;
    team.submit(&least("4")).await?;
    let workload = team.until_workload_of("a", "is admitted", admitted).await?;
    ensure!(at(&workload, "/status/admission/podSetAssignments/0/count") == 7, "{workload}");
    world
        .until(&job(&team, "a"), "runs seven pods", |job| {
            at(job, "/spec/parallelism") == 7 && at(job, "/status/active") == 7
        })
        .await?;
    deactivate(&team, "a").await?;
    world
        .until(&job(&team, "a"), "asks for ten again", |job| {
            at(job, "/spec/suspend") == true && at(job, "/spec/parallelism") == 10
        })
        .await?;
    Ok(())
}

async fn kq_076_overhead_and_defaults_are_part_of_the_request(world: &World) -> Result<()> {
    let team = world.team("kq-076").await?;
    team.queue(&[("cpu", "8")]).await?;
    let class = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass",
        "metadata": {"name": team.named("boxed")}, "handler": "boxed",
        "overhead": {"podFixed": {"cpu": "250m"}}});
    let range = json!({"apiVersion": "v1", "kind": "LimitRange",
        "metadata": {"name": "usual", "namespace": team.name()},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "500m"}}]}});
    world.apply(&[Draft::new(class), Draft::new(range)]).await?;
    let container = json!([{"name": "main", "image": "registry.local/worker:1"}]);
    let job = long("a").set("/spec/template/spec", "containers", container).set(
        "/spec/template/spec",
        "runtimeClassName",
        json!(team.named("boxed")),
    );
    charged(&team, &job, "750m").await
}

async fn kq_077_sidecars_and_pod_level_resources_count(world: &World) -> Result<()> {
    let team = world.team("kq-077").await?;
    team.queue(&[("cpu", "8")]).await?;
    let container = |name: &str, cpu: &str| json!({"name": name, "image": "registry.local/worker:1", "resources": {"requests": {"cpu": cpu}}});
    let mut sidecar = container("proxy", "1");
    sidecar["restartPolicy"] = json!("Always");
    let setup = container("setup", "1500m");
    let job = long("a").cpu("1").set("/spec/template/spec", "initContainers", json!([sidecar, setup]));
    charged(&team, &job, "2500m").await?;
    let whole = json!({"requests": {"cpu": "3"}});
    charged(&team, &long("b").cpu("1").set("/spec/template/spec", "resources", whole), "3").await
}

async fn kq_118_finished_pods_give_quota_back(world: &World) -> Result<()> {
    let team = world.team("kq-118").await?;
    team.queue(&[("cpu", "4")]).await?;
    // Four pods side by side, six in all; each takes a while.
    team.submit(&JobSpec::new("a").pods(4).cpu("1").run_for("4s").set("/spec", "completions", json!(6)))
        .await?;
    team.until_workload_of("a", "needs fewer pods", |workload| {
        at(workload, "/status/reclaimablePods/0/count").as_i64().unwrap_or(0) >= 2
    })
    .await?;
    world
        .until(&team.cluster_queue(), "has quota back", |queue| {
            at(queue, "/status/flavorsUsage/0/resources/0/total") == "2"
                || at(queue, "/status/flavorsUsage/0/resources/0/total") == "0"
        })
        .await?;
    team.jobs()?.complete("a").await?;
    Ok(())
}

async fn kq_159_jobs_of_a_cron_job_are_queued_one_by_one(world: &World) -> Result<()> {
    let team = world.team("kq-159").await?;
    team.queue(&[("cpu", "4")]).await?;
    let template = JobSpec::new("unused").object();
    let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "hourly", "namespace": team.name()},
        "spec": {"schedule": "0 * * * *", "suspend": true, "jobTemplate": {
            "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "main"}}, "spec": template["spec"]}}});
    let stored = world.create(&Draft::new(cron)).await?;
    let owner = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "hourly", "controller": true,
        "uid": at(&stored, "/metadata/uid")}]);
    team.submit(&JobSpec::new("hourly-1").set("/metadata", "ownerReferences", owner)).await?;
    team.until_workload_of("hourly-1", "is admitted", admitted).await?;
    team.jobs()?.complete("hourly-1").await?;
    Ok(())
}

async fn kq_160_parts_of_other_jobs_have_no_workload(world: &World) -> Result<()> {
    let team = world.team("kq-160").await?;
    team.queue(&[("cpu", "4")]).await?;
    team.submit(&long("whole")).await?;
    let whole = world.until(&job(&team, "whole"), "exists", |_| true).await?;
    let owner = |version: &str, kind: &str, uid: &Value| json!([{"apiVersion": version, "kind": kind, "name": "whole", "controller": true, "uid": uid}]);
    let uid = at(&whole, "/metadata/uid");
    let part = long("part").set("/metadata", "ownerReferences", owner("batch/v1", "Job", uid));
    team.submit(&part).await?;
    world.until(&job(&team, "part"), "runs with the whole", |job| at(job, "/status/active") == 1).await?;
    // Somebody who is no job leads past no queue.
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "whole", "namespace": team.name()}});
    let map = world.create(&Draft::new(map)).await?;
    let forged = owner("v1", "ConfigMap", at(&map, "/metadata/uid"));
    team.submit(&long("forged").set("/metadata", "ownerReferences", forged)).await?;
    team.until_workload_of("forged", "is admitted", admitted).await?;
    let workloads = fairlead_multicluster::work::workload_of(world.fleet(), team.name(), "part").await?;
    ensure!(workloads.is_none(), "a part of a job has a Workload of its own");
    Ok(())
}

async fn kq_162_job_adopts_the_workload_that_it_names(world: &World) -> Result<()> {
    let team = world.team("kq-162").await?;
    team.queue(&[("cpu", "4")]).await?;
    let naming = |name: &str, workload: &str| {
        let annotations = json!({"kueue.x-k8s.io/prebuilt-workload-name": workload});
        long(name).cpu("1").set("/metadata", "annotations", annotations)
    };
    let pods = |cpu: &str| [pod_set("main", 1, &[("cpu", cpu), ("memory", "64Mi")])];
    team.submit(&naming("a", "made")).await?;
    team.jobs()?.event("a", "InvalidJob", BOUND).await?;
    team.submit_workload("made", &pods("1")).await?;
    let workload = team.until_workload_of("a", "is admitted", admitted).await?;
    ensure!(at(&workload, "/metadata/name") == "made", "{workload}");
    world.until(&job(&team, "a"), "runs", |job| at(job, "/status/active") == 1).await?;
    team.submit_workload("other", &pods("2")).await?;
    team.submit(&naming("b", "other")).await?;
    team.until_workload_of("b", "is out of sync", |workload| reason(workload, "Finished") == "OutOfSync")
        .await?;
    Ok(())
}

async fn kq_163_job_may_change_while_suspended_and_starts_anew_when_running(world: &World) -> Result<()> {
    let team = world.team("kq-163").await?;
    team.queue(&[("cpu", "4")]).await?;
    team.submit(&long("first").cpu("3")).await?;
    team.until_workload_of("first", "is admitted", admitted).await?;
    team.submit(&long("second").cpu("2")).await?;
    let before =
        team.until_workload_of("second", "waits", |workload| has(workload, "QuotaReserved", "False")).await?;
    let smaller = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "main", "image": "registry.local/worker:1", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}]}}}});
    world.patch(&job(&team, "second"), &smaller).await?;
    let after = team.until_workload_of("second", "fits now", admitted).await?;
    ensure!(at(&before, "/metadata/uid") == at(&after, "/metadata/uid"), "another Workload was made");
    world.until(&job(&team, "second"), "runs", |job| at(job, "/status/active") == 1).await?;

    team.jobs()?.delete("first").await?;
    let two = json!({"spec": {"parallelism": 2}});
    world.patch(&job(&team, "second"), &json!({"spec": {"parallelism": 1}})).await?;
    team.submit(&long("third").pods(1).set("/spec", "completions", json!(3))).await?;
    let before = team.until_workload_of("third", "is admitted", admitted).await?;
    world.until(&job(&team, "third"), "runs", |job| at(job, "/status/active") == 1).await?;
    world.patch(&job(&team, "third"), &two).await?;
    let after = team
        .until_workload_of("third", "is queued anew", |workload| {
            at(workload, "/metadata/uid") != at(&before, "/metadata/uid") && admitted(workload)
        })
        .await?;
    ensure!(at(&after, "/spec/podSets/0/count") == 2, "{after}");
    world.until(&job(&team, "third"), "runs two pods", |job| at(job, "/status/active") == 2).await?;
    Ok(())
}

async fn kq_164_job_may_change_its_queue_while_suspended(world: &World) -> Result<()> {
    let team = world.team("kq-164").await?;
    team.queue(&[("cpu", "1")]).await?;
    let other = team.named("other");
    let quota: &[(&str, &str)] = &[("cpu", "4"), ("memory", "1Ti")];
    world
        .apply(&[cluster_queue(&other, &[(team.name(), quota)]), local_queue(team.name(), "other", &other)])
        .await?;
    team.submit(&long("a").cpu("2")).await?;
    team.until_workload_of("a", "waits", |workload| has(workload, "QuotaReserved", "False")).await?;
    let label = json!({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}});
    world.patch(&job(&team, "a"), &label).await?;
    let workload = team.until_workload_of("a", "is admitted", admitted).await?;
    ensure!(at(&workload, "/spec/queueName") == "other", "{workload}");
    world.until(&job(&team, "a"), "runs", |job| at(job, "/spec/suspend") == false).await?;
    let back = json!({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "main"}}});
    world.refuses_patch("while it runs", &job(&team, "a"), &back, "only while the Job is suspended").await
}

async fn kq_171_pods_name_their_queues(world: &World) -> Result<()> {
    let team = world.team("kq-171").await?;
    team.queue(&[("cpu", "4")]).await?;
    team.submit(&long("a")).await?;
    let running = world.until(&job(&team, "a"), "runs", |job| at(job, "/status/active") == 1).await?;
    let metadata = at(&running, "/spec/template/metadata");
    ensure!(at(metadata, "/labels/kueue.x-k8s.io~1cluster-queue-name") == team.name(), "{metadata}");
    ensure!(at(metadata, "/labels/kueue.x-k8s.io~1local-queue-name") == "main", "{metadata}");
    ensure!(at(metadata, "/labels/kueue.x-k8s.io~1podset") == "main", "{metadata}");
    let workload = team.workload_of("a").await?;
    let name = at(metadata, "/annotations/kueue.x-k8s.io~1workload").as_str().context("an annotation")?;
    ensure!(workload == At::workload(team.name(), name), "{name}");
    Ok(())
}

async fn kq_173_completions_follow_the_parallelism(world: &World) -> Result<()> {
    let team = world.team("kq-173").await?;
    team.queue(&[("cpu", "3")]).await?;
    let annotations = json!({"kueue.x-k8s.io/job-min-parallelism": "2",
        "kueue.x-k8s.io/job-completions-equal-parallelism": "true"});
    let indexed = long("a").pods(5).cpu("1").set("/spec", "completionMode", json!("Indexed")).set(
        "/metadata",
        "annotations",
        annotations,
    );
    team.submit(&indexed).await?;
    world
        .until(&job(&team, "a"), "has three completions", |job| {
            at(job, "/spec/completions") == 3 && at(job, "/spec/parallelism") == 3
        })
        .await?;
    deactivate(&team, "a").await?;
    world
        .until(&job(&team, "a"), "has five again", |job| {
            at(job, "/spec/completions") == 5 && at(job, "/spec/parallelism") == 5
        })
        .await?;
    Ok(())
}
