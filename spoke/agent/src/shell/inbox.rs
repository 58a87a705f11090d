//! What waits for the machine: bounded, lossless, and with superseded levels left out.

use std::collections::HashMap;

use fairlead_model::{Floor, Uid};
use tokio::sync::mpsc;

use crate::core::Input;
use crate::ports::Kind;

/// How many arrivals may wait before whoever brings more has to wait.
const CAPACITY: usize = 4096;
/// How many arrivals the machine takes before it has its turn.
const BATCH: usize = 1024;

/// What arrives from this cluster.
#[derive(Debug)]
pub(super) enum Arrival {
    /// For the core.
    Input(Input),
    /// A floor is durable, or could not be made so.
    Floor(Floor, Result<(), String>),
}

/// The machine's end of the inbox.
#[derive(Debug)]
pub(super) struct Inbox {
    receiver: mpsc::Receiver<Arrival>,
}

/// An inbox and the end that fills it.
pub(super) fn inbox() -> (mpsc::Sender<Arrival>, Inbox) {
    let (sender, receiver) = mpsc::channel(CAPACITY);
    (sender, Inbox { receiver })
}

impl Inbox {
    /// Waits for an arrival, then takes what is there, at most a batch. May be dropped while it waits: nothing is
    /// lost then. Empty when nobody can bring anything any more.
    pub(super) async fn take(&mut self) -> Vec<Arrival> {
        let mut batch = Vec::new();
        self.receiver.recv_many(&mut batch, BATCH).await;
        coalesce(batch)
    }
}

/// Leaves out versions of an object that a later one in the same batch replaces. Only levels of one object are
/// left out, and no level moves across anything that is not a level.
fn coalesce(batch: Vec<Arrival>) -> Vec<Arrival> {
    let mut kept: Vec<Arrival> = Vec::with_capacity(batch.len());
    let mut places: HashMap<(Kind, Uid), usize> = HashMap::new();
    for arrival in batch {
        let Arrival::Input(Input::Object(object)) = &arrival else {
            places.clear();
            kept.push(arrival);
            continue;
        };
        let place = *places.entry((object.kind, object.uid.clone())).or_insert(kept.len());
        match kept.get_mut(place) {
            Some(earlier) => *earlier = arrival,
            None => kept.push(arrival),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fairlead_model::ObjectKey;
    use serde_json::Value;

    use super::*;
    use crate::ports::Object;

    fn object(uid: &str, version: u64) -> Arrival {
        let (key, json) = (ObjectKey::new("ns", uid), Arc::new(Value::Null));
        Arrival::Input(Input::Object(Object { kind: Kind::Pod, key, uid: uid.into(), version, json }))
    }

    fn versions(batch: Vec<Arrival>) -> Vec<u64> {
        let version = |arrival: &Arrival| match arrival {
            Arrival::Input(Input::Object(object)) => object.version,
            _ => 0,
        };
        coalesce(batch).iter().map(version).collect()
    }

    #[test]
    fn later_levels_replace_earlier_ones_but_nothing_moves_across_the_rest() {
        assert_eq!(versions(vec![object("a", 1), object("b", 2), object("a", 3)]), [3, 2]);
        let synced = Arrival::Input(Input::Synced(Kind::Pod));
        assert_eq!(versions(vec![object("a", 1), synced, object("a", 3)]), [1, 0, 3]);
    }
}
