//! The link between hub and spoke fails; the work does not.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    fleet::{Fleet, Tenant},
    process::Signal,
    proxy::Cut,
    work::{JobSpec, Jobs, Queue, copies_created, has_condition, is_active, placed, spokes_with},
};

/// A dropped link, not a stopped process: packets vanish for 20 s while Jobs run.
pub(crate) async fn cut_for_twenty_seconds_changes_nothing(fleet: &Fleet) -> Result<()> {
    let namespace = "cut";
    fleet.tenant(&Tenant::new(namespace)).await?;
    Queue::new(namespace).apply(fleet).await?;
    let jobs = Jobs::on_hub(fleet, namespace)?;
    jobs.create(&JobSpec::new("short").queue("main").run_for("10s")).await?;
    jobs.until("short", "is active", is_active).await?;
    let spoke = placed(fleet, namespace, "short").await?;
    let copies = Jobs::on_spoke(fleet, &spoke, namespace)?;
    let link = fleet.spoke(&spoke)?.link().cut_until_dropped(Cut::BlackHole);
    let cut = Instant::now();
    copies.complete("short").await?;
    // What is tested is a cut of 20 s: this waits for the cut's length, not for an effect.
    tokio::time::sleep(Duration::from_secs(20).saturating_sub(cut.elapsed())).await;
    let unknown = jobs.get("short").await?.context("the Job")?;
    ensure!(!has_condition(&unknown, "Complete") && is_active(&unknown), "the hub cannot know yet");
    let healed = Instant::now();
    drop(link);
    jobs.complete("short").await?;
    println!("  status caught up {:.2} s after the link's return (aim 2 s)", healed.elapsed().as_secs_f32());
    ensure!(healed.elapsed() < Duration::from_secs(10), "status caught up after {:?}", healed.elapsed());
    ensure!(spokes_with(fleet, namespace, "short").await? == std::slice::from_ref(&spoke));
    let creates = copies_created(fleet, namespace)?.len();
    ensure!(creates == 1, "created {creates} times");
    fleet.connected(&spoke).await
}

/// A spoke whose session is up and whose agent hangs delays no Job that another can take.
pub(crate) async fn hung_agent_delays_no_other_job(fleet: &Fleet) -> Result<()> {
    let namespace = "hung";
    fleet.tenant(&Tenant::new(namespace)).await?;
    Queue::new(namespace).apply(fleet).await?;
    let jobs = Jobs::on_hub(fleet, namespace)?;
    let mut slowest = Duration::ZERO;
    for spoke in ["onprem-a", "aws-use1", "gcp-euw4"] {
        let agent = fleet.spoke(spoke)?.agent();
        agent.signal(Signal::SIGSTOP)?;
        for n in 0..4 {
            let name = format!("{spoke}-{n}");
            let begin = Instant::now();
            jobs.create(&JobSpec::new(&name).queue("main")).await?;
            let chosen = placed(fleet, namespace, &name).await?;
            slowest = slowest.max(begin.elapsed());
            ensure!(chosen != spoke, "{name} was placed on {spoke}, whose agent hangs");
        }
        agent.signal(Signal::SIGCONT)?;
        fleet.connected(spoke).await?;
    }
    println!("  slowest placement beside a hung agent: {:.2} s (aim 2.5 s)", slowest.as_secs_f32());
    ensure!(slowest < Duration::from_millis(12_500), "{slowest:?}");
    for job in jobs.list().await? {
        jobs.complete(&job.metadata.name.unwrap_or_default()).await?;
    }
    Ok(())
}
