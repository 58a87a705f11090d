//! From what the user typed to the Workload.

use fairlead_api::kueue::Workload;
use fairlead_api::labels;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::ListParams;

use crate::failure::{Exit, Failure};
use crate::hub::{Hub, explain_missing_kind};

/// What kind of object the user named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Workload,
    Job,
    Either,
}

/// The Workload behind `NAME`, `workload/NAME` or `job/NAME`.
pub(super) async fn workload(hub: &Hub, target: &str) -> Result<Workload, Failure> {
    let (named, name) = parse(target)?;
    let workloads: Api<Workload> = Api::namespaced(hub.client.clone(), &hub.namespace);
    if named != Named::Job
        && let Some(workload) = workloads.get_opt(name).await.map_err(explain_missing_kind)?
    {
        return Ok(workload);
    }
    let missing = |kind: &str| {
        Failure::new(Exit::NotFound, format!("no {kind} {name:?} in namespace {:?}", hub.namespace))
    };
    if named == Named::Workload {
        return Err(missing("Workload"));
    }
    let jobs: Api<Job> = Api::namespaced(hub.client.clone(), &hub.namespace);
    let kind = if named == Named::Job { "Job" } else { "Workload or Job" };
    let job = jobs.get_opt(name).await?.ok_or_else(|| missing(kind))?;
    let uid = job.metadata.uid.clone().unwrap_or_default();
    let selector = ListParams::default().labels(&format!("{}={uid}", labels::JOB_UID));
    let found = workloads.list(&selector).await.map_err(explain_missing_kind)?.items;
    newest(found).ok_or_else(|| without_workload(&job))
}

fn parse(target: &str) -> Result<(Named, &str), Failure> {
    let (kind, name) = target.split_once('/').unwrap_or(("", target));
    let named = match kind.split('.').next().unwrap_or_default() {
        "" => Named::Either,
        "workload" | "workloads" | "kwl" => Named::Workload,
        "job" | "jobs" => Named::Job,
        _ => {
            return Err(Failure::new(
                Exit::Usage,
                format!("{target:?}: write NAME, workload/NAME or job/NAME"),
            ));
        }
    };
    if name.is_empty() || name.contains('/') {
        return Err(Failure::new(Exit::Usage, format!("{target:?} has no name, or several")));
    }
    Ok((named, name))
}

fn newest(workloads: Vec<Workload>) -> Option<Workload> {
    workloads
        .into_iter()
        .max_by_key(|workload| workload.metadata.creation_timestamp.as_ref().map(|time| time.0))
}

/// The Job exists and no Workload does: either the hub leaves it alone, or it has not seen it yet.
fn without_workload(job: &Job) -> Failure {
    let name = job.metadata.name.as_deref().unwrap_or_default();
    let queued = job.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(labels::QUEUE_NAME));
    let message = if queued {
        format!("Job {name:?} has no Workload yet: the hub has not seen it; is it running?")
    } else {
        format!("Job {name:?} has no label {}, so the hub leaves it alone", labels::QUEUE_NAME)
    };
    Failure::new(Exit::NotFound, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_may_be_written_as_kubectl_does() {
        for (target, expected) in [
            ("train", (Named::Either, "train")),
            ("job/train", (Named::Job, "train")),
            ("job.batch/train", (Named::Job, "train")),
            ("workload.kueue.x-k8s.io/w", (Named::Workload, "w")),
        ] {
            assert_eq!(parse(target).unwrap(), expected);
        }
        for bad in ["pod/x", "job/", "", "job/a/b"] {
            assert_eq!(parse(bad).unwrap_err().exit(), Exit::Usage, "{bad}");
        }
    }

    #[test]
    fn a_job_without_the_label_is_told_from_one_not_seen_yet() {
        let mut job = Job::default();
        assert!(without_workload(&job).to_string().contains("leaves it alone"));
        job.metadata.labels = Some([(labels::QUEUE_NAME.to_owned(), "q".to_owned())].into());
        assert!(without_workload(&job).to_string().contains("not seen"));
    }
}
