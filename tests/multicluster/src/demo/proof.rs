//! What became of the Jobs: complete on the hub, and run exactly once, as the spokes say.
//!
//! The hub is not asked where a Job ran. Each spoke's API server is asked which copies it holds of which run, and its
//! audit log how often a Job of that name was ever created there, by whomever.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;

use super::jobs::NAMESPACES;
use crate::fleet::Fleet;
use crate::work::{Jobs, copies_created, has_condition};

/// The annotation that a copy bears: the UID of the Job on the hub.
const RUN: &str = fairlead_api::labels::RUN;

/// What was found of one Job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    name: String,
    /// It is complete on the hub, with as many pods as it asked for.
    complete: bool,
    /// The spokes that hold a copy of its run.
    copies: Vec<String>,
    /// The spokes on which a Job of its name was created, one entry a creation.
    created: Vec<String>,
}

impl Found {
    fn exactly_once(&self) -> bool {
        self.complete && self.copies.len() == 1 && self.created == self.copies
    }
}

/// What was found of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Proof(Vec<Found>);

impl Proof {
    /// Asks the hub and the spokes.
    pub(super) async fn read(fleet: &Fleet) -> Result<Self> {
        let mut all = Vec::new();
        for namespace in NAMESPACES {
            let copies = copies(fleet, namespace).await?;
            let created = created(fleet, namespace)?;
            for job in Jobs::on_hub(fleet, namespace)?.list().await? {
                let name = job.metadata.name.clone().unwrap_or_default();
                let run = job.metadata.uid.clone().unwrap_or_default();
                all.push(Found {
                    complete: complete(&job),
                    copies: copies.get(&run).cloned().unwrap_or_default(),
                    created: created.get(&name).cloned().unwrap_or_default(),
                    name: format!("{namespace}/{name}"),
                });
            }
        }
        Ok(Self(all))
    }

    /// How many Jobs there are.
    pub(super) fn jobs(&self) -> usize {
        self.0.len()
    }

    fn good(&self) -> usize {
        self.0.iter().filter(|found| found.exactly_once()).count()
    }

    /// Whether every Job completed exactly once.
    pub(super) fn holds(&self) -> bool {
        self.good() == self.jobs() && !self.0.is_empty()
    }

    /// `N of N completed exactly once`.
    pub(super) fn line(&self) -> String {
        format!("{} of {} completed exactly once", self.good(), self.jobs())
    }

    /// How many Jobs ran where, and those with which something is wrong.
    pub(super) fn table(&self) -> String {
        let mut by_cluster: BTreeMap<&str, usize> = BTreeMap::new();
        for cluster in self.0.iter().flat_map(|found| &found.created) {
            *by_cluster.entry(cluster).or_default() += 1;
        }
        let mut lines = vec!["CLUSTER    JOBS".to_owned()];
        lines.extend(by_cluster.iter().map(|(cluster, jobs)| format!("{cluster:<10} {jobs:>4}")));
        for found in self.0.iter().filter(|found| !found.exactly_once()) {
            let done = if found.complete { "complete" } else { "not complete" };
            lines.push(format!(
                "{}: {done}, copies on {:?}, created on {:?}",
                found.name, found.copies, found.created
            ));
        }
        lines.join("\n")
    }
}

fn complete(job: &Job) -> bool {
    let wanted = job.spec.as_ref().and_then(|spec| spec.completions);
    let succeeded = job.status.as_ref().and_then(|status| status.succeeded);
    has_condition(job, "Complete") && wanted.is_some() && wanted == succeeded
}

/// Run → the spokes that hold a copy of it now.
async fn copies(fleet: &Fleet, namespace: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for spoke in fleet.spokes() {
        for copy in Jobs::on_spoke(fleet, spoke.name(), namespace)?.list().await? {
            let run = copy
                .metadata
                .annotations
                .and_then(|mut annotations| annotations.remove(RUN))
                .unwrap_or_default();
            found.entry(run).or_default().push(spoke.name().to_owned());
        }
    }
    Ok(found)
}

/// Name → the spokes on which a Job of that name was ever created.
fn created(fleet: &Fleet, namespace: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for write in copies_created(fleet, namespace)? {
        found.entry(write.name).or_default().push(write.spoke);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(complete: bool, copies: &[&str], created: &[&str]) -> Found {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Found { name: "team-a/x".to_owned(), complete, copies: owned(copies), created: owned(created) }
    }

    #[test]
    fn twice_never_and_unfinished_are_all_seen() {
        let good = found(true, &["a"], &["a"]);
        assert!(Proof(vec![good.clone()]).holds());
        for bad in [
            found(false, &["a"], &["a"]),
            found(true, &[], &[]),
            found(true, &["a", "b"], &["a", "b"]),
            found(true, &["a"], &["a", "a"]),
            found(true, &["a"], &["b"]),
            found(true, &["a"], &["a", "b"]),
        ] {
            let proof = Proof(vec![good.clone(), bad.clone()]);
            assert!(!proof.holds(), "{bad:?}");
            assert_eq!(proof.line(), "1 of 2 completed exactly once");
            assert!(proof.table().contains("team-a/x: "), "{bad:?}");
        }
    }

    #[test]
    fn nothing_proves_nothing() {
        assert!(!Proof::default().holds());
    }
}
