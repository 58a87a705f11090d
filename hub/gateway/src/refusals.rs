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

/// Strangers can cause refusals, so Events for them are rationed: one in this time, in all, ...
const EVENT_EVERY_MS: i64 = 1_000;
/// ... and so much saved up while nothing happens.
const SAVED_UP_MS: i64 = 20 * EVENT_EVERY_MS;
/// Events of cluster-scoped objects live here.
const NAMESPACE: &str = "default";

/// Writes the Events.
#[derive(Debug)]
pub(crate) struct Refusals {
    store: Store,
    ration: Mutex<Ration>,
}

/// How many Events may still be written, as the time that they are worth.
#[derive(Clone, Copy, Debug)]
struct Ration {
    spent_until: Millis,
}

impl Ration {
    /// Takes one Event's worth, if there is any.
    fn take(&mut self, mono: Millis) -> bool {
        let from = self.spent_until.max(mono.plus(-SAVED_UP_MS));
        let may = from.plus(EVENT_EVERY_MS) <= mono;
        if may {
            self.spent_until = from.plus(EVENT_EVERY_MS);
        }
        may
    }
}

impl Refusals {
    pub(crate) const fn new(store: Store) -> Self {
        Self { store, ration: Mutex::new(Ration { spent_until: Millis(i64::MIN) }) }
    }

    /// A spoke that called itself `name` was not enrolled.
    pub(crate) async fn join_refused(&self, name: &str, from: SocketAddr, why: &EnrolRefusal) {
        warn!(cluster = name, %from, reason = %why.reason, detail = why.detail, "a join was refused");
        if !self.ration.lock().unwrap_or_else(PoisonError::into_inner).take(clock::now().mono) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_strangers_are_rationed() {
        let mut ration = Ration { spent_until: Millis(i64::MIN) };
        let now = Millis(1_000_000);
        assert_eq!((0..100).filter(|_| ration.take(now)).count(), 20);
        assert!(!ration.take(now.plus(999)));
        assert!(ration.take(now.plus(1_000)));
        assert!(!ration.take(now.plus(1_000)));
    }
}
