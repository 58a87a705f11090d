//! Operations: configuration, metrics, visibility, roles, certificates, charts.

#[path = "operations/charts.rs"]
mod charts;
#[path = "operations/served.rs"]
mod served;

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    fleet::apply_all,
    kueue::{Team, World, admitted, local_queue, priority_class},
    scenario,
    scenario::Scenario,
    wait,
    work::{BOUND, JobSpec},
};
use serde_json::{Value, json};

use served::{Presented, probe, scrape};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        scenario!(kq_030_a_wrong_configuration_prevents_the_start).together(),
        scenario!(kq_031_feature_gates_come_from_one_place).together(),
        scenario!(kq_052_pending_workloads_are_visible_in_queue_order).together(),
        scenario!(kq_204_a_scrape_has_the_families_and_is_for_who_may).together(),
        scenario!(kq_209_a_batch_user_sees_the_line_of_a_local_queue_only).together(),
        scenario!(kq_214_the_visibility_api_has_limits_of_its_own).together(),
        scenario!(kq_215_probes_respond).together(),
        scenario!(charts::both_charts_are_what_the_api_server_takes).together(),
        scenario!(kq_205_only_selected_local_queues_have_metrics),
        scenario!(kq_210_certificates_come_from_the_hub_or_from_files),
        scenario!(kq_211_the_lowest_tls_version_is_enforced),
    ]
}

const HEAD: &str = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n";

/// The hub's configuration file, which scenarios change. Empty at first: the defaults.
fn file() -> PathBuf {
    std::env::temp_dir().join(format!("fairlead-kueue-{}.yaml", std::process::id()))
}

/// Arguments of the world's hub.
pub(crate) fn hub_args() -> Result<[&'static str; 2]> {
    let path = file();
    fs::write(&path, HEAD).with_context(|| format!("write {}", path.display()))?;
    let path: &'static str = Box::leak(path.display().to_string().into_boxed_str());
    Ok(["--config", path])
}

fn configure(text: &str) -> Result<()> {
    Ok(fs::write(file(), format!("{HEAD}{text}"))?)
}

/// Starts a hub of its own with this configuration, and returns what it says before it gives up.
async fn refused(world: &World, text: &str, args: &[&str]) -> Result<String> {
    let path = std::env::temp_dir().join(format!("fairlead-wrong-{}-{}", std::process::id(), text.len()));
    fs::write(&path, format!("{HEAD}{text}"))?;
    let mut command = tokio::process::Command::new(&world.fleet().programs().hub);
    command.args([
        "run",
        "--advertise",
        "hub:1",
        "--health",
        "127.0.0.1:0",
        "--kubeconfig",
        "/nowhere",
        "--config",
    ]);
    let output = command.arg(&path).args(args).kill_on_drop(true).output().await?;
    fs::remove_file(&path)?;
    ensure!(!output.status.success(), "it started with {text}");
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

async fn kq_030_a_wrong_configuration_prevents_the_start(world: &World) -> Result<()> {
    for (text, why) in [
        (
            "fairSharing: {preemptionStrategies: [LessThanInitialShare, LessThanOrEqualToFinalShare]}",
            "fairSharing.preemptionStrategies",
        ),
        ("waitForPodsReady: {timeot: 5m}", "waitForPodsReady.timeot: unknown field"),
        (
            "resources: {quotaCheckStrategy: IgnoreUndeclared, excludeResourcePrefixes: [a]}",
            "resources.quotaCheckStrategy",
        ),
    ] {
        let said = refused(world, text, &[]).await?;
        ensure!(said.contains(why), "{text}: {said}");
    }
    Ok(())
}

async fn kq_031_feature_gates_come_from_one_place(world: &World) -> Result<()> {
    let text = "featureGates: {LocalQueueMetrics: false}";
    let said = refused(world, text, &["--feature-gates", "MetricsForCohorts=false"]).await?;
    ensure!(said.contains("featureGates") && said.contains("use one of them"), "{said}");
    Ok(())
}

/// Lets the API server reach the hub's visibility API: a Service of the kind ExternalName stands for the pods.
pub(crate) async fn register(world: &World) -> Result<()> {
    let fleet = world.fleet();
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "fairlead-visibility", "namespace": "fairlead-system"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    let api = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1beta2.visibility.kueue.x-k8s.io"},
        "spec": {
            "group": "visibility.kueue.x-k8s.io", "version": "v1beta2", "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"name": "fairlead-visibility", "namespace": "fairlead-system",
                        "port": fleet.visibility_address().port()},
        },
    });
    apply_all(world.cluster()?, &[service, api]).await?;
    let waiting = [
        "wait",
        "--for=condition=Available",
        "apiservice/v1beta2.visibility.kueue.x-k8s.io",
        "--timeout=60s",
    ];
    world.cluster()?.kubectl(&waiting).await?;
    Ok(())
}

const VISIBILITY: &str = "/apis/visibility.kueue.x-k8s.io/v1beta2";

/// A line of the visibility API, in its order: owner, place in the ClusterQueue, place in the LocalQueue.
pub(crate) async fn pending(world: &World, path: &str) -> Result<Vec<(String, i64, i64)>> {
    let text = world.cluster()?.kubectl(&["get", "--raw", &format!("{VISIBILITY}/{path}")]).await?;
    let summary: Value = serde_json::from_str(&text)?;
    let items = summary["items"].as_array().context("a summary without items")?;
    let position = |item: &Value, of: &str| item[of].as_i64().unwrap_or(-1);
    let row = |item: &Value| {
        let owner = item["metadata"]["ownerReferences"][0]["name"].as_str().unwrap_or_default().to_owned();
        (owner, position(item, "positionInClusterQueue"), position(item, "positionInLocalQueue"))
    };
    Ok(items.iter().map(row).collect())
}

/// A full queue with three jobs in line, by priority: `first` and `third` in the team's LocalQueue, `second` in another.
async fn three_in_line(world: &World, team: &Team<'_>) -> Result<()> {
    team.queue(&[("cpu", "2")]).await?;
    world.apply(&[local_queue(team.name(), "other", team.name())]).await?;
    team.submit(&JobSpec::new("runs").cpu("2").run_for("600s")).await?;
    team.until_workload_of("runs", "is admitted", admitted).await?;
    for (name, priority, local) in [("third", 1, "main"), ("second", 2, "other"), ("first", 3, "main")] {
        let class = team.named(name);
        world.apply(&[priority_class(&class, priority)]).await?;
        let job = JobSpec::new(name).cpu("2").queue(local);
        team.submit(&job.set("/metadata/labels", "kueue.x-k8s.io/priority-class", json!(class))).await?;
    }
    Ok(())
}

async fn kq_052_pending_workloads_are_visible_in_queue_order(world: &World) -> Result<()> {
    register(world).await?;
    let team = world.team("kq-052").await?;
    three_in_line(world, &team).await?;
    let row = |name: &str, cluster, local| (name.to_owned(), cluster, local);
    let all = vec![row("first", 0, 0), row("second", 1, 0), row("third", 2, 1)];
    let of_queue = format!("clusterqueues/{}/pendingworkloads", team.name());
    wait::until_true("the line is three long", BOUND, async || Ok(pending(world, &of_queue).await? == all))
        .await?;
    let page = pending(world, &format!("{of_queue}?offset=1&limit=1")).await?;
    ensure!(page == all[1..2], "{page:?}");
    let hostile = pending(world, &format!("{of_queue}?offset=-7&limit=99999999999999999999")).await?;
    ensure!(hostile == all, "{hostile:?}");
    let local = format!("namespaces/{}/localqueues/{}/pendingworkloads", team.name(), "main");
    let of_local = pending(world, &local).await?;
    ensure!(of_local == [all[0].clone(), all[2].clone()], "{of_local:?}");
    for unknown in [
        "clusterqueues/kq-052-unknown/pendingworkloads",
        "namespaces/kq-052/localqueues/unknown/pendingworkloads",
    ] {
        let Err(error) = pending(world, unknown).await else { anyhow::bail!("{unknown} is there") };
        ensure!(error.to_string().contains("NotFound"), "{unknown}: {error}");
    }
    let discovered = world.cluster()?.kubectl(&["get", "--raw", VISIBILITY]).await?;
    ensure!(discovered.contains("clusterqueues/pendingworkloads"), "{discovered}");
    Ok(())
}

/// Waits until the metrics have lines that begin so. Whoever scrapes is a service account of this namespace.
pub(crate) async fn scraped(world: &World, namespace: &str, wanted: &[String]) -> Result<()> {
    let reader = served::token(world, namespace, "prometheus", true).await?;
    wait::until("everything is scraped", BOUND, async || {
        let text = scrape(world, Some(&reader)).await?;
        let missing: Vec<&String> = wanted
            .iter()
            .filter(|line| !text.lines().any(|found| found.starts_with(line.as_str())))
            .collect();
        if missing.is_empty() { Ok(Some(())) } else { anyhow::bail!("without {missing:?}") }
    })
    .await
}

async fn kq_204_a_scrape_has_the_families_and_is_for_who_may(world: &World) -> Result<()> {
    let team = world.team("kq-204").await?;
    team.queue(&[("cpu", "2")]).await?;
    team.submit(&JobSpec::new("runs").cpu("1").run_for("600s")).await?;
    team.until_workload_of("runs", "is admitted", admitted).await?;
    team.submit(&JobSpec::new("waits").cpu("2")).await?;
    let queue = team.name();
    let wanted = [
        format!(
            "kueue_admitted_workloads_total{{cluster_queue=\"{queue}\",priority_class=\"\",replica_role=\"leader\"}} 1"
        ),
        format!("kueue_admitted_active_workloads{{cluster_queue=\"{queue}\",replica_role=\"leader\"}} 1"),
        format!(
            "kueue_pending_workloads{{cluster_queue=\"{queue}\",status=\"inadmissible\",replica_role=\"leader\"}} 1"
        ),
        format!(
            "kueue_cluster_queue_status{{cluster_queue=\"{queue}\",status=\"active\",replica_role=\"leader\"}} 1"
        ),
        "kueue_admission_attempts_total{result=\"success\",replica_role=\"leader\"}".to_owned(),
        "kueue_build_info{".to_owned(),
    ];
    scraped(world, team.name(), &wanted).await?;
    let nobody = served::token(world, "kq-204", "nobody", false).await?;
    for (token, code) in [(None, "401"), (Some("nonsense"), "401"), (Some(nobody.as_str()), "403")] {
        let Err(error) = scrape(world, token).await else { anyhow::bail!("{code} is let in") };
        ensure!(error.to_string().contains(code), "{code}: {error}");
    }
    Ok(())
}

async fn kq_205_only_selected_local_queues_have_metrics(world: &World) -> Result<()> {
    let team = world.team("kq-205").await?;
    team.queue(&[("cpu", "2")]).await?;
    let labelled = local_queue(team.name(), "seen", team.name());
    world.apply(&[labelled]).await?;
    world
        .patch(
            &fairlead_multicluster::kueue::At::local_queue(team.name(), "seen"),
            &json!({"metadata": {"labels": {"seen": "yes"}}}),
        )
        .await?;
    let reader = served::token(world, "kq-205", "prometheus", true).await?;
    let shows = async |name: &str| -> Result<bool> {
        let line = format!("kueue_local_queue_status{{active=\"True\",name=\"{name}\",namespace=\"kq-205\"");
        Ok(scrape(world, Some(&reader)).await?.lines().any(|found| found.starts_with(&line)))
    };
    let own = "main";
    wait::until_true("both are shown", BOUND, async || Ok(shows("seen").await? && shows(own).await?)).await?;
    configure("metrics: {localQueueMetrics: {localQueueSelector: {matchLabels: {seen: \"yes\"}}}}\n")?;
    wait::until_true("one is shown, without a restart", BOUND, async || {
        Ok(shows("seen").await? && !shows(own).await?)
    })
    .await?;
    configure("")
}

async fn kq_209_a_batch_user_sees_the_line_of_a_local_queue_only(world: &World) -> Result<()> {
    register(world).await?;
    let team = world.team("kq-209").await?;
    team.queue(&[("cpu", "2")]).await?;
    let bind = |role: &str, kind: &str, user: &str| {
        let mut binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": {"name": format!("kq-209-{user}")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
        });
        if kind == "RoleBinding" {
            binding["metadata"]["namespace"] = json!("kq-209");
        }
        binding
    };
    let bindings = [
        bind("kueue-batch-user-role", "RoleBinding", "kq-ada"),
        bind("kueue-batch-admin-role", "ClusterRoleBinding", "kq-root"),
    ];
    apply_all(world.cluster()?, &bindings).await?;
    let of_local = format!("{VISIBILITY}/namespaces/kq-209/localqueues/{}/pendingworkloads", "main");
    let of_queue = format!("{VISIBILITY}/clusterqueues/{}/pendingworkloads", team.name());
    let cluster = world.cluster()?;
    let (ada, root) = (cluster.access_for_user("kq-ada", None)?, cluster.access_for_user("kq-root", None)?);
    let sees =
        async |access, path: &str| cluster.kubectl_as(access, &["get", "--raw", path], "").await.is_ok();
    wait::until_true("roles are put together", BOUND, async || {
        Ok(sees(&ada, &of_local).await && sees(&root, &of_queue).await)
    })
    .await?;
    ensure!(!sees(&ada, &of_queue).await, "a user sees a ClusterQueue's line");
    ensure!(sees(&root, &of_local).await, "an administrator does not see a LocalQueue's line");
    let can = async |access, args: &[&str]| {
        cluster.kubectl_as(access, &[&["auth", "can-i"], args].concat(), "").await.is_ok()
    };
    ensure!(can(&ada, &["create", "jobs", "-n", "kq-209"]).await, "a user cannot submit");
    ensure!(
        !can(&ada, &["create", "localqueues.kueue.x-k8s.io", "-n", "kq-209"]).await,
        "a user makes queues"
    );
    ensure!(
        can(&root, &["create", "clusterqueues.kueue.x-k8s.io"]).await,
        "an administrator makes no queues"
    );
    Ok(())
}

async fn kq_214_the_visibility_api_has_limits_of_its_own(world: &World) -> Result<()> {
    let set = [
        "--set",
        "gateway.advertise=hub:7443",
        "--set",
        "visibility.fairness=true",
        "--show-only",
        "templates/visibility.yaml",
    ];
    let manifests = charts::template("fairlead-hub", &set).await?;
    let wanted = ["FlowSchema", "PriorityLevelConfiguration"];
    let parts = manifests
        .split("\n---")
        .filter(|part| wanted.iter().any(|kind| part.contains(&format!("kind: {kind}\n"))));
    world.cluster()?.apply(&parts.collect::<Vec<_>>().join("\n---\n")).await?;
    let schema = world.cluster()?.kubectl(&["get", "flowschema", "kueue-visibility", "-o", "json"]).await?;
    let schema: Value = serde_json::from_str(&schema)?;
    ensure!(schema["spec"]["matchingPrecedence"] == 9000, "{schema}");
    ensure!(schema["spec"]["priorityLevelConfiguration"]["name"] == "kueue-visibility", "{schema}");
    Ok(())
}

async fn kq_215_probes_respond(world: &World) -> Result<()> {
    for path in ["/livez", "/readyz"] {
        wait::until_true(&format!("{path} is answered with ok"), BOUND, async || {
            Ok(probe(world, path).await?.starts_with("HTTP/1.1 200"))
        })
        .await?;
    }
    ensure!(probe(world, "/nothing").await?.starts_with("HTTP/1.1 404"), "any path is answered");
    Ok(())
}

async fn kq_210_certificates_come_from_the_hub_or_from_files(world: &World) -> Result<()> {
    let own = Presented::at(world.fleet().metrics_address()).await?;
    ensure!(own.names.iter().any(|name| name == "fairlead-metrics.fairlead-system.svc"), "{:?}", own.names);
    let folder = std::env::temp_dir().join(format!("fairlead-certs-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    served::put_certificate(&folder, "first.example")?;
    configure(&format!(
        "internalCertManagement: {{enable: false}}\nwebhook: {{certDir: {}}}\n",
        folder.display()
    ))?;
    world.fleet().restart_hub(&[]).await?;
    let shows = async |name: &str| -> Result<bool> {
        Ok(Presented::at(world.fleet().metrics_address()).await?.names == [name.to_owned()])
    };
    wait::until_true("the file's certificate is presented", BOUND, async || shows("first.example").await)
        .await?;
    served::put_certificate(&folder, "second.example")?;
    wait::until_true("the exchanged one is presented, without a restart", BOUND, async || {
        shows("second.example").await
    })
    .await?;
    configure("")?;
    world.fleet().restart_hub(&[]).await?;
    wait::until_true("the hub's own is presented again", BOUND, async || {
        Ok(Presented::at(world.fleet().metrics_address()).await?.names == own.names)
    })
    .await?;
    Ok(fs::remove_dir_all(&folder)?)
}

async fn kq_211_the_lowest_tls_version_is_enforced(world: &World) -> Result<()> {
    let address = world.fleet().metrics_address();
    ensure!(Presented::speaks_12(address).await, "TLS 1.2 is refused by default");
    configure("tls: {minVersion: VersionTLS13}\n")?;
    world.fleet().restart_hub(&[]).await?;
    wait::until_true("TLS 1.3 is spoken", BOUND, async || Ok(Presented::at(address).await.is_ok())).await?;
    ensure!(!Presented::speaks_12(address).await, "TLS 1.2 is still spoken");
    configure("")?;
    world.fleet().restart_hub(&[]).await
}
