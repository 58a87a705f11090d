//! Hub and agents killed at each named point: every Job still runs once and completes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    fleet::{CRASH_POINT, Fleet, Spoke, Tenant},
    process::Process,
    wait,
    work::{BOUND, JobSpec, Jobs, Queue, copies_created},
};
use fairlead_runtime::CrashPoint;

/// How many Jobs are under way when a process dies.
const JOBS: usize = 3;

pub(crate) async fn hub_at_every_point(fleet: &Fleet) -> Result<()> {
    for point in points("hub.") {
        let namespace = prepare(fleet, point).await?;
        fleet.restart_hub(&[(CRASH_POINT, point.name())]).await?;
        submit(fleet, &namespace).await?;
        killed(&[fleet.hub()], point).await?;
        fleet.restart_hub(&[]).await?;
        each_ran_once(fleet, &namespace).await.with_context(|| format!("after {}", point.name()))?;
    }
    Ok(())
}

pub(crate) async fn agent_at_every_point(fleet: &Fleet) -> Result<()> {
    for point in points("spoke.") {
        let namespace = prepare(fleet, point).await?;
        for spoke in fleet.spokes() {
            spoke.restart_agent(&[(CRASH_POINT, point.name())])?;
        }
        // One agent dies; the others may still be coming back, and die later or never.
        submit(fleet, &namespace).await?;
        let agents: Vec<&Process> = fleet.spokes().map(Spoke::agent).collect();
        killed(&agents, point).await?;
        for spoke in fleet.spokes() {
            spoke.restart_agent(&[])?;
        }
        each_ran_once(fleet, &namespace).await.with_context(|| format!("after {}", point.name()))?;
    }
    Ok(())
}

/// The crash points of one program. Going through all of them is what proves that each named point is used.
fn points(prefix: &str) -> Vec<CrashPoint> {
    CrashPoint::ALL.iter().copied().filter(|point| point.name().starts_with(prefix)).collect()
}

async fn prepare(fleet: &Fleet, point: CrashPoint) -> Result<String> {
    let namespace = format!("crash-{}", point.name().replace('.', "-"));
    fleet.tenant(&Tenant::new(&namespace)).await?;
    Queue::new(&namespace).apply(fleet).await?;
    Ok(namespace)
}

async fn submit(fleet: &Fleet, namespace: &str) -> Result<()> {
    let jobs = Jobs::on_hub(fleet, namespace)?;
    for n in 0..JOBS {
        jobs.create(&JobSpec::new(&format!("job-{n}")).queue("main").run_for("1s")).await?;
    }
    Ok(())
}

/// Waits until one of these processes has been killed by itself.
async fn killed(processes: &[&Process], point: CrashPoint) -> Result<()> {
    wait::until_true(&format!("a process dies at {}", point.name()), BOUND, async || {
        for process in processes {
            if let Some(status) = process.exited()? {
                use std::os::unix::process::ExitStatusExt;
                ensure!(
                    status.signal() == Some(9),
                    "{} ended with {status}: {}",
                    process.name(),
                    process.log_tail(5)
                );
                return Ok(true);
            }
        }
        Ok(false)
    })
    .await
}

async fn each_ran_once(fleet: &Fleet, namespace: &str) -> Result<()> {
    let jobs = Jobs::on_hub(fleet, namespace)?;
    for n in 0..JOBS {
        let complete = |job: &k8s_openapi::api::batch::v1::Job| {
            fairlead_multicluster::work::has_condition(job, "Complete")
        };
        jobs.until_within(&format!("job-{n}"), "is complete", Duration::from_secs(90), complete).await?;
    }
    let creates = copies_created(fleet, namespace)?.len();
    ensure!(creates == JOBS, "{JOBS} Jobs were created {creates} times");
    Ok(())
}
