//! Names refusals on the hub: in the log, and as Events on the Cluster concerned.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::PoisonError;

use fairlead_api::labels::HUB_SERVICE_ACCOUNT;
use fairlead_link::EnrolRefusal;
use fairlead_model::{Millis, ObjectKey};
use fairlead_runtime::store::{Op, Outcome, Store};
use fairlead_runtime::{Object, clock, entropy};
use serde_json::{Value, json};
use tracing::{debug, warn};

use crate::objects::{CLUSTERS, EVENTS, describe, execute};

/// Strangers can cause refusals, so no more than one Event in this time is written for them, in all.
const EVENT_EVERY_MS: i64 = 1_000;
/// Events of cluster-scoped objects live here.
const NAMESPACE: &str = "default";

/// Writes the Events.
#[derive(Debug)]
pub(crate) struct Refusals {
    store: Store,
    next: Mutex<Millis>,
}

impl Refusals {
    pub(crate) const fn new(store: Store) -> Self {
        Self { store, next: Mutex::new(Millis(i64::MIN)) }
    }

    /// A spoke that called itself `name` was not enrolled.
    pub(crate) async fn join_refused(&self, name: &str, from: SocketAddr, why: &EnrolRefusal) {
        warn!(cluster = name, %from, reason = %why.reason, detail = why.detail, "a join was refused");
        if !self.may_write(clock::now().mono) {
            return;
        }
        // Only a Cluster that exists has Events; a stranger's invention has none.
        let Outcome::Done(cluster) =
            execute(&self.store, &CLUSTERS, &ObjectKey::new("", name), Op::Get).await
        else {
            return;
        };
        let Ok(suffix) = entropy::token() else { return };
        let key = ObjectKey::new(NAMESPACE, format!("{name}.{}", suffix.get(..16).unwrap_or(&suffix)));
        let event = event(&key, &cluster, why, clock::now().wall);
        match execute(&self.store, &EVENTS, &key, Op::Create(event)).await {
            Outcome::Done(_) => {}
            other => debug!(cluster = name, why = describe(other), "the Event was not written"),
        }
    }

    fn may_write(&self, mono: Millis) -> bool {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let may = mono >= *next;
        if may {
            *next = mono.plus(EVENT_EVERY_MS);
        }
        may
    }
}

fn event(key: &ObjectKey, cluster: &Object, why: &EnrolRefusal, wall: Millis) -> Value {
    // Events carry at most 1 KiB of text.
    let note: String = why.detail.chars().take(1000).collect();
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"namespace": &*key.namespace, "name": &*key.name},
        "eventTime": clock::micro_time(wall), "type": "Warning", "action": "Join",
        "reason": why.reason.token(), "note": note,
        "reportingController": "fairlead.dev/gateway", "reportingInstance": HUB_SERVICE_ACCOUNT,
        "regarding": {"apiVersion": "fairlead.dev/v1alpha1", "kind": "Cluster", "name": &*cluster.key.name,
                      "uid": cluster.uid.as_str()},
    })
}
