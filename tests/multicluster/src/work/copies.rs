//! The copies that were ever made on spokes, from the spokes' audit logs: what "exactly once" is judged by.

use anyhow::Result;
use jiff::Timestamp;

use crate::{
    audit::{Verb, writes_of},
    fleet::Fleet,
};

/// A carried-out write of a Job on a spoke.
#[derive(Clone, Debug)]
pub struct CopyWrite {
    /// The spoke.
    pub spoke: String,
    /// Name of the Job.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// How it was written.
    pub verb: Verb,
    /// When the API server received the write.
    pub received: Timestamp,
    /// The Job is gone after it.
    pub gone: bool,
}

/// Every write of a Job in the namespace, on every spoke, by whomever. Needs audit logs.
pub fn copy_writes(fleet: &Fleet, namespace: &str) -> Result<Vec<CopyWrite>> {
    let mut found = Vec::new();
    for spoke in fleet.spokes() {
        let mut log = fleet.spoke_cluster(spoke.name())?.audit_log()?;
        log.refresh()?;
        let of_namespace =
            writes_of(log.events(), "jobs").into_iter().filter(|write| write.namespace == namespace);
        found.extend(of_namespace.map(|write| CopyWrite {
            spoke: spoke.name().to_owned(),
            name: write.name.to_owned(),
            uid: write.uid.to_owned(),
            verb: write.verb,
            received: write.received,
            gone: write.gone,
        }));
    }
    Ok(found)
}

/// The creations among them.
pub fn copies_created(fleet: &Fleet, namespace: &str) -> Result<Vec<CopyWrite>> {
    let mut writes = copy_writes(fleet, namespace)?;
    writes.retain(|write| write.verb == Verb::Create);
    Ok(writes)
}
