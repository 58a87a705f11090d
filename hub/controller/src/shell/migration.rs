//! Coming from Kueue: what is in the way, and rewriting what is stored.
//!
//! Kueue's definitions and ours have the same names. Objects that were stored in the older version can be read whole
//! only as long as Kueue's conversion runs, so they are rewritten before its definitions are replaced.

use std::fmt;

use fairlead_api::convert::{self, ConvertError};
use fairlead_api::kueue::{GROUP, LEGACY_VERSION, VERSION};
use fairlead_api::{SCHEMA_VERSION, labels};
use fairlead_model::Millis;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// The lease of a running Kueue, in whatever namespace.
const KUEUE_LEASE: &str = "c1f6bfd2.kueue.x-k8s.io";
/// Objects per page.
const PAGE: u32 = 500;

/// Something that keeps the hub from running here, or from being started safely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Kueue holds its lease.
    Running {
        /// Where.
        namespace: String,
        /// Who.
        holder: String,
    },
    /// A webhook of Kueue's is called for objects that the hub writes.
    Webhook {
        /// `ValidatingWebhookConfiguration` or `MutatingWebhookConfiguration`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// Objects may be stored in the older version.
    StoredVersions {
        /// The definition.
        definition: String,
    },
    /// The definition is not ours, or of another version of ours.
    Definition {
        /// The definition.
        definition: String,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running { namespace, holder } => write!(
                f,
                "Kueue runs in the namespace {namespace} ({holder}); when everything is rewritten, scale it to 0"
            ),
            Self::Webhook { kind, name } => {
                write!(
                    f,
                    "Kueue's {kind} {name} is called for queues and Workloads; delete it once Kueue is stopped"
                )
            }
            Self::StoredVersions { definition } => write!(
                f,
                "{definition}: objects may be stored as {LEGACY_VERSION}; run `fairlead-hub preflight --migrate` while \
                 Kueue still runs"
            ),
            Self::Definition { definition } => {
                write!(
                    f,
                    "{definition} is not this hub's definition; apply the CRDs of the chart fairlead-hub"
                )
            }
        }
    }
}

/// Why the look, or the rewriting, ended early.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// The API server refused or did not answer.
    #[error("{what}: {why}")]
    Api {
        /// What was asked for.
        what: String,
        /// The answer.
        why: kube::Error,
    },
    /// An object cannot be converted.
    #[error("{object}: {why}")]
    Convert {
        /// Kind and name.
        object: String,
        /// Why.
        why: ConvertError,
    },
}

fn api(what: impl Into<String>) -> impl FnOnce(kube::Error) -> MigrationError {
    let what = what.into();
    move |why| MigrationError::Api { what, why }
}

/// Everything that is in the way, most urgent first; nothing when the hub can be started. It needs an administrator's
/// rights.
///
/// # Errors
///
/// [`MigrationError::Api`].
pub async fn obstacles(client: &Client, now: Millis) -> Result<Vec<Obstacle>, MigrationError> {
    let definitions = definitions(client).await?;
    let mut found: Vec<Obstacle> = definitions
        .iter()
        .filter(|definition| stored_versions(definition).iter().any(|version| version != VERSION))
        .map(|definition| Obstacle::StoredVersions { definition: name_of(definition) })
        .collect();
    found.extend(running(client, now).await?);
    found.extend(webhooks(client).await?);
    found.extend(
        definitions
            .iter()
            .filter(|definition| !is_ours(definition))
            .map(|definition| Obstacle::Definition { definition: name_of(definition) }),
    );
    Ok(found)
}

/// Kueue's kinds as they are installed, by whomever.
async fn definitions(client: &Client) -> Result<Vec<CustomResourceDefinition>, MigrationError> {
    let all: Api<CustomResourceDefinition> = Api::all(client.clone());
    let list = all.list(&ListParams::default()).await.map_err(api("list definitions"))?;
    Ok(list.items.into_iter().filter(|definition| definition.spec.group == GROUP).collect())
}

fn is_ours(definition: &CustomResourceDefinition) -> bool {
    let labels = definition.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(labels::SCHEMA)).is_some_and(|found| found == SCHEMA_VERSION)
}

fn name_of(definition: &CustomResourceDefinition) -> String {
    definition.metadata.name.clone().unwrap_or_default()
}

fn stored_versions(definition: &CustomResourceDefinition) -> &[String] {
    definition.status.as_ref().and_then(|status| status.stored_versions.as_deref()).unwrap_or_default()
}

async fn running(client: &Client, now: Millis) -> Result<Vec<Obstacle>, MigrationError> {
    let named = ListParams::default().fields(&format!("metadata.name={KUEUE_LEASE}"));
    let leases = Api::<Lease>::all(client.clone()).list(&named).await.map_err(api("list leases"))?;
    let live = leases.items.into_iter().filter(|lease| is_live(lease, now));
    Ok(live
        .map(|lease| Obstacle::Running {
            namespace: lease.metadata.namespace.unwrap_or_default(),
            holder: lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default(),
        })
        .collect())
}

/// Somebody holds the lease and has renewed it lately.
fn is_live(lease: &Lease, now: Millis) -> bool {
    let Some(spec) = &lease.spec else { return false };
    let held = spec.holder_identity.as_deref().is_some_and(|holder| !holder.is_empty());
    let until = spec.renew_time.as_ref().map(|renewed| {
        renewed.0.as_second().saturating_add(spec.lease_duration_seconds.unwrap_or_default().into())
    });
    held && until.is_some_and(|until| until >= now.0.div_euclid(1000))
}

async fn webhooks(client: &Client) -> Result<Vec<Obstacle>, MigrationError> {
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let mut found = Vec::new();
    for one in validating.list(&ListParams::default()).await.map_err(api("list webhooks"))? {
        found.push(("ValidatingWebhookConfiguration", serde_json::to_value(one).unwrap_or_default()));
    }
    for one in mutating.list(&ListParams::default()).await.map_err(api("list webhooks"))? {
        found.push(("MutatingWebhookConfiguration", serde_json::to_value(one).unwrap_or_default()));
    }
    let kueues = found.into_iter().filter(|(_, configuration)| is_about_kueue(configuration));
    Ok(kueues
        .map(|(kind, configuration)| {
            let name = configuration.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            Obstacle::Webhook { kind, name: name.to_owned() }
        })
        .collect())
}

/// One of its webhooks is called for Kueue's kinds.
fn is_about_kueue(configuration: &Value) -> bool {
    let list =
        |value: &Value, field: &str| value.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let rules = list(configuration, "webhooks").into_iter().flat_map(|webhook| list(&webhook, "rules"));
    rules.into_iter().any(|rule| list(&rule, "apiGroups").contains(&json!(GROUP)))
}

/// Rewrites every object of Kueue's kinds in the stored version, statuses too, and then says so in the definitions.
/// Returns how many objects were rewritten. It changes nothing that is rewritten already, so it can be run again.
///
/// # Errors
///
/// [`MigrationError`]; what was rewritten until then stays so.
pub async fn migrate(client: &Client) -> Result<usize, MigrationError> {
    let mut rewritten = 0_usize;
    for definition in definitions(client).await? {
        if stored_versions(&definition).iter().all(|version| version == VERSION) {
            continue;
        }
        rewritten = rewritten.saturating_add(rewrite_all(client, &definition).await?);
        let name = name_of(&definition);
        let all: Api<CustomResourceDefinition> = Api::all(client.clone());
        let stored = json!({"status": {"storedVersions": [VERSION]}});
        let outcome = all.patch_status(&name, &PatchParams::default(), &Patch::Merge(stored)).await;
        outcome.map_err(api(format!("storedVersions of {name}")))?;
    }
    Ok(rewritten)
}

async fn rewrite_all(
    client: &Client,
    definition: &CustomResourceDefinition,
) -> Result<usize, MigrationError> {
    let names = &definition.spec.names;
    let resource = ApiResource {
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        api_version: format!("{GROUP}/{VERSION}"),
        kind: names.kind.clone(),
        plural: names.plural.clone(),
    };
    let served = definition.spec.versions.iter().find(|version| version.name == VERSION);
    let subresources = served.and_then(|version| version.subresources.as_ref());
    let has_status = subresources.is_some_and(|subresources| subresources.status.is_some());
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut page = ListParams::default().limit(PAGE);
    let mut count = 0_usize;
    loop {
        let list = all.list(&page).await.map_err(api(format!("list {}", names.plural)))?;
        for object in list.items {
            rewrite(client, &resource, object, has_status).await?;
            count = count.saturating_add(1);
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(count),
        }
    }
}

/// Writes an object back as it should be stored: itself first, then its status with the version that this gave.
async fn rewrite(
    client: &Client,
    resource: &ApiResource,
    object: DynamicObject,
    has_status: bool,
) -> Result<(), MigrationError> {
    let name = object.metadata.name.clone().unwrap_or_default();
    let called = format!("{} {name}", resource.kind);
    let mut json = serde_json::to_value(&object).unwrap_or_default();
    json["kind"] = json!(resource.kind);
    json["apiVersion"] = json!(resource.api_version);
    let before = json.clone();
    convert::rename_fields(&mut json)
        .map_err(|why| MigrationError::Convert { object: called.clone(), why })?;
    let one: Api<DynamicObject> = match object.metadata.namespace.as_deref() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let put = PostParams::default();
    let wanted: DynamicObject = serde_json::from_value(json.clone()).unwrap_or(object);
    let stored = match one.replace(&name, &put, &wanted).await {
        // Gone or changed since it was listed: whoever changed it has stored the newer version.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return Ok(()),
        other => other.map_err(api(&called))?,
    };
    if has_status && json.get("status") != before.get("status") {
        json["metadata"]["resourceVersion"] = json!(stored.metadata.resource_version);
        let wanted: DynamicObject = serde_json::from_value(json).unwrap_or(stored);
        one.replace_status(&name, &put, &wanted).await.map_err(api(&called))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_live_while_it_is_held_and_renewed() {
        let now = Millis("2026-12-01T08:00:00Z".parse::<jiff::Timestamp>().unwrap().as_millisecond());
        let lease = |holder: &str, renewed: &str| -> Lease {
            serde_json::from_value(
                json!({"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}}),
            )
            .unwrap()
        };
        assert!(is_live(&lease("kueue-1", "2026-12-01T07:59:50.000000Z"), now));
        assert!(!is_live(&lease("kueue-1", "2026-12-01T07:59:40.000000Z"), now));
        assert!(!is_live(&lease("", "2026-12-01T07:59:50.000000Z"), now));
        assert!(!is_live(&Lease::default(), now));
    }

    #[test]
    fn only_webhooks_for_kueues_kinds_are_in_the_way() {
        let about = |group: &str| json!({"webhooks": [{"rules": [{"apiGroups": ["batch"]}, {"apiGroups": [group]}]}]});
        assert!(is_about_kueue(&about("kueue.x-k8s.io")));
        assert!(!is_about_kueue(&about("apps")));
        assert!(!is_about_kueue(&json!({})));
    }
}
