//! The charts, as helm renders them and as the API server takes them.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{binaries, fleet, kueue::World};
use tokio::process::Command;

/// Renders a chart into the namespace that it wants.
pub(super) async fn template(chart: &str, args: &[&str]) -> Result<String> {
    helm(&[&["template", "release", "--namespace", "fairlead-system"], args].concat(), chart).await
}

async fn helm(args: &[&str], chart: &str) -> Result<String> {
    let program = tokio::task::spawn_blocking(binaries::helm).await??;
    let mut command = Command::new(program);
    // A helm that is built from its module thinks of an old Kubernetes.
    command
        .args(args)
        .args(["--kube-version", "v1.36.3"])
        .arg(fleet::charts().join(chart))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = command.output().await.context("run helm")?;
    ensure!(output.status.success(), "helm {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

const HUB: [&str; 2] = ["--set", "gateway.advertise=hub.example:7443"];
const SPOKE: [&str; 6] =
    ["--set", "hub.address=hub.example:7443,cluster.name=east", "--set", PIN, "--set", "join.token=fj1.a.b"];
const PIN: &str = "hub.caPin=sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// `helm template | kubectl apply --dry-run=server`, with every switch on that needs no foreign definition; and what a
/// typing error in the values gives.
pub(super) async fn both_charts_are_what_the_api_server_takes(world: &World) -> Result<()> {
    let more = [&HUB[..], &["--set", "replicas=2,podDisruptionBudget.enabled=true,visibility.fairness=true"]]
        .concat();
    for (chart, args) in [("fairlead-hub", &HUB[..]), ("fairlead-hub", &more), ("fairlead-spoke", &SPOKE)] {
        let manifests = template(chart, args).await?;
        ensure!(
            manifests.matches("helm.sh/resource-policy: keep").count() > 0,
            "{chart}: definitions are not kept"
        );
        ensure!(!manifests.contains("kind: Namespace\n"), "{chart} makes a namespace");
        let applying = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-"];
        world.cluster()?.kubectl_as(world.cluster()?.admin(), &applying, &manifests).await?;
    }
    let with_certificates =
        [&HUB[..], &["--set", "certManager.enabled=true,metrics.serviceMonitor.enabled=true"]].concat();
    let manifests = template("fairlead-hub", &with_certificates).await?;
    for part in [
        "kind: Certificate",
        "cert-manager.io/inject-ca-from",
        "certDir: /etc/fairlead/tls",
        "kind: ServiceMonitor",
    ] {
        ensure!(manifests.contains(part), "{part} is missing");
    }
    for (chart, args, why) in [
        ("fairlead-hub", &["--set", "gateway.advertize=hub:1"][..], "advertize"),
        ("fairlead-hub", &["--set", "image.digest=sha256:short"], "digest"),
        ("fairlead-hub", &[], "gateway.advertise is required"),
        ("fairlead-spoke", &["--set", "join.token=a"], "hub.address is required"),
        ("fairlead-spoke", &["--set", "hub.adress=h:1"], "adress"),
    ] {
        let Err(error) = template(chart, args).await else { anyhow::bail!("{chart} takes {args:?}") };
        ensure!(error.to_string().contains(why), "{args:?}: {error}");
    }
    let elsewhere =
        helm(&["template", "release", "--namespace", "other", HUB[0], HUB[1]], "fairlead-hub").await;
    let Err(error) = elsewhere else { anyhow::bail!("it takes any namespace") };
    ensure!(error.to_string().contains("install into the namespace fairlead-system"), "{error}");
    Ok(())
}
