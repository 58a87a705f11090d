//! `kubectl fairlead` against a real hub: what people read and what scripts branch on.

use std::{fs, time::Duration};

use anyhow::{Result, ensure};
use fairlead_multicluster::{
    fleet::{Fleet, Ran, Tenant},
    proxy::{Cut, Proxy},
    rig::Access,
    work::{JobSpec, Jobs, Queue},
};
use serde_json::Value;

pub(crate) async fn output_is_for_people_and_scripts(fleet: &Fleet) -> Result<()> {
    let namespace = "cli";
    fleet.tenant(&Tenant::new(namespace)).await?;
    Queue::new(namespace).apply(fleet).await?;
    let jobs = Jobs::on_hub(fleet, namespace)?;
    jobs.create(&JobSpec::new("asked").queue("main")).await?;
    jobs.complete("asked").await?;

    let clusters: Value = serde_json::from_str(&fleet.cli(&["clusters", "-o", "json"]).await?)?;
    ensure!(clusters["kind"] == "List" && clusters["items"].as_array().is_some_and(|items| items.len() >= 3));
    let one = fleet.cli(&["clusters", "onprem-a", "-o", "name"]).await?;
    ensure!(one == "cluster.fairlead.dev/onprem-a\n", "{one}");
    let queues = fleet.cli(&["queues", "-n", namespace]).await?;
    ensure!(
        queues.lines().nth(1).is_some_and(|row| row.starts_with("main ") && row.contains("True")),
        "{queues}"
    );

    let text = fleet.cli(&["explain", "-n", namespace, "job/asked"]).await?;
    for part in ["Finished (Succeeded)", "Cluster:", "Why:"] {
        ensure!(text.contains(part), "no {part} in:\n{text}");
    }
    let json: Value =
        serde_json::from_str(&fleet.cli(&["explain", "-n", namespace, "asked", "-o", "json"]).await?)?;
    ensure!(json["job"] == "Job/asked" && json["verdict"]["code"].is_string(), "{json}");

    let version = fleet.cli(&["version"]).await?;
    for part in ["client", "hub", "spoke/onprem-a", env!("CARGO_PKG_VERSION")] {
        ensure!(version.contains(part), "no {part} in:\n{version}");
    }
    Ok(())
}

pub(crate) async fn exit_codes_say_what_went_wrong(fleet: &Fleet) -> Result<()> {
    let admin = fleet.hub_cluster()?.admin();
    let nobody = fleet.hub_cluster()?.access_for_user("nobody-in-particular", None)?;
    for (access, args, code) in [
        (admin, &["clusters"][..], 0),
        (admin, &["frobnicate"], 2),
        (admin, &["join", "Not_A_Name"], 2),
        (admin, &["explain", "pod/x"], 2),
        (admin, &["clusters", "no-such"], 4),
        (admin, &["explain", "no-such"], 4),
        (admin, &["--context", "no-such", "clusters"], 1),
        (&nobody, &["clusters"], 5),
        (&nobody, &["join", "mine"], 5),
    ] {
        let ran = fleet.programs().try_cli(access, args).await?;
        as_expected(&ran, code, &args.join(" "))?;
    }
    a_hub_that_does_not_answer(fleet, admin).await
}

/// Through a link that swallows everything: `--request-timeout` ends it, with a code of its own.
async fn a_hub_that_does_not_answer(fleet: &Fleet, admin: &Access) -> Result<()> {
    let url = fleet.hub_cluster()?.url();
    let address = url.trim_start_matches("https://").parse()?;
    let proxy = Proxy::start(address).await?;
    proxy.cut(Cut::BlackHole);
    let text = admin.kubeconfig().replace(url, &format!("https://{}", proxy.address()));
    let path = fleet.rig().folder().join("black-hole.yaml");
    fs::write(&path, text)?;
    let args = ["--kubeconfig", &path.display().to_string(), "--request-timeout", "1s", "clusters"]
        .map(String::from);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let asked = fleet.programs().try_cli(admin, &args);
    let ran = tokio::time::timeout(Duration::from_secs(30), asked).await??;
    as_expected(&ran, 6, "clusters of a hub that does not answer")
}

fn as_expected(ran: &Ran, code: i32, what: &str) -> Result<()> {
    ensure!(ran.code == code, "{what}: exit code {} instead of {code}: {}", ran.code, ran.stderr);
    // Messages never mix with data.
    ensure!(ran.stdout.is_empty() == (code != 0), "{what}: stdout {:?}", ran.stdout);
    ensure!(ran.stderr.is_empty() == (code == 0), "{what}: stderr {:?}", ran.stderr);
    Ok(())
}
