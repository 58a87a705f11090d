//! The few objects that the gateway itself reads and writes.

use fairlead_api::labels::FieldManager;
use fairlead_model::ObjectKey;
use fairlead_runtime::Resource;
use fairlead_runtime::store::{Call, Op, Options, Outcome, Store};

pub(crate) const SECRETS: Resource = Resource::new("", "v1", "secrets", true);
pub(crate) const CONFIG_MAPS: Resource = Resource::new("", "v1", "configmaps", true);
pub(crate) const CLUSTERS: Resource = Resource::new("fairlead.dev", "v1alpha1", "clusters", false);
pub(crate) const EVENTS: Resource = Resource::new("events.k8s.io", "v1", "events", true);

/// Carries out one operation as the field manager of Clusters and enrolment.
pub(crate) async fn execute(store: &Store, resource: &Resource, key: &ObjectKey, op: Op) -> Outcome {
    let options = Options { field_manager: Some(FieldManager::Clusters.as_str()), ..Options::default() };
    store.execute(&Call { resource, key, op: &op, options: &options }).await
}

/// An outcome that was not hoped for, in words.
pub(crate) fn describe(outcome: Outcome) -> String {
    match outcome {
        Outcome::Refused { message, .. } | Outcome::Unknown(message) => message,
        Outcome::Conflict => "somebody else changed it at the same time".to_owned(),
        Outcome::AlreadyExists => "it exists already".to_owned(),
        Outcome::NotFound => "it does not exist".to_owned(),
        Outcome::Done(_) => "it was done".to_owned(),
    }
}
