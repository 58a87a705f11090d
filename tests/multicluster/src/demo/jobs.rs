//! The demo's queues and Jobs.

use std::path::{Path, PathBuf};

use anyhow::Result;
use futures::future::try_join_all;

use crate::fleet::Fleet;
use crate::work::{JobSpec, Jobs};

/// The users' namespaces; each has one queue.
pub(super) const NAMESPACES: [&str; 2] = ["team-a", "team-b"];

/// The LocalQueue of each namespace, as `examples/queues.yaml` has it.
const QUEUES: [&str; 2] = ["research", "production"];

/// A file of `examples/`.
fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// Applies the queues and waits until Jobs can be submitted to them.
pub(super) async fn set_up(fleet: &Fleet) -> Result<()> {
    let hub = fleet.hub_cluster()?;
    hub.kubectl(&["apply", "--server-side", "-f", &example("queues.yaml").display().to_string()]).await?;
    for (namespace, queue) in NAMESPACES.into_iter().zip(QUEUES) {
        let active = ["wait", "--for=condition=Active", "--timeout=30s"];
        hub.kubectl(&[&active[..], &[&format!("clusterqueue/{queue}")]].concat()).await?;
        // The hub marks the LocalQueues of federated queues; the entry policies go by that mark.
        let label = r"--for=jsonpath={.metadata.labels.fairlead\.dev/dispatch}=true";
        let queue = format!("localqueue/{queue}");
        hub.kubectl(&["wait", label, "--timeout=30s", "-n", namespace, &queue]).await?;
    }
    Ok(())
}

/// Submits the plain sample Job with kubectl, as its users do, and 29 others, and returns how many there are.
pub(super) async fn submit(fleet: &Fleet) -> Result<usize> {
    let sample = example("sample-job.yaml").display().to_string();
    fleet.hub_cluster()?.kubectl(&["create", "-f", &sample]).await?;
    let others = others();
    let creating =
        others.iter().map(async |(namespace, job)| Jobs::on_hub(fleet, namespace)?.create(job).await);
    let created = try_join_all(creating).await?;
    Ok(created.len() + 1)
}

/// Jobs of different shapes: small ones, ones with one GPU, and some that only the largest nodes can take.
fn others() -> Vec<(&'static str, JobSpec)> {
    let job = |n: u32| {
        let job = JobSpec::new(&format!("job-{n:02}")).pods(1 + n % 3);
        let job = match n % 5 {
            0 => job.cpu("2").memory("8Gi").gpus(1),
            1 => job.cpu("4").memory("16Gi").gpus(2 + n % 2 * 2).pods(1),
            2 => job.cpu("8").memory("32Gi").pods(1),
            3 => job.cpu("500m").memory("1Gi"),
            _ => job.cpu("1").memory("2Gi"),
        };
        job.run_for(&format!("{}s", 1 + n % 4))
    };
    let train = |n: u32| JobSpec::new(&format!("train-{n}")).cpu("8").memory("64Gi").gpus(8).run_for("3s");
    let place = |n: u32| usize::try_from(n).unwrap_or_default() % NAMESPACES.len();
    let small = (1..=26).map(|n| (place(n), job(n)));
    let large = (1..=3).map(|n| (place(n), train(n)));
    small.chain(large).map(|(at, job)| (NAMESPACES[at], job.queue(QUEUES[at]))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_29_beside_the_sample_and_no_two_share_a_name() {
        let others = others();
        assert_eq!(others.len(), 29);
        let names: BTreeSet<_> =
            others.iter().map(|(namespace, job)| (*namespace, job.name().to_owned())).collect();
        assert_eq!(names.len(), 29);
        assert!(NAMESPACES.iter().all(|wanted| others.iter().any(|(namespace, _)| namespace == wanted)));
    }

    #[test]
    fn the_sample_has_the_numbers_that_its_users_know() {
        let text = std::fs::read_to_string(example("sample-job.yaml")).unwrap();
        let job: serde_json::Value = serde_yaml::from_str(&text).unwrap();
        assert_eq!(job["spec"]["parallelism"], 3);
        let requests = &job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"];
        assert_eq!(
            (&requests["cpu"], &requests["memory"]),
            (&serde_json::json!(1), &serde_json::json!("200Mi"))
        );
        assert!(job["spec"].get("suspend").is_none() && job["spec"].get("managedBy").is_none());
    }
}
