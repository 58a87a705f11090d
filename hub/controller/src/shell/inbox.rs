//! What waits for the brain: bounded, lossless, and with superseded levels left out.

use std::collections::HashMap;

use fairlead_model::Uid;
use tokio::sync::mpsc;

use crate::brain::Input;
use crate::ports::Kind;

/// How many inputs may wait before whoever brings more has to wait.
pub const INBOX_CAPACITY: usize = 4096;
/// How many inputs the brain takes before it has its turn.
const BATCH: usize = 1024;

/// The brain's end of the inbox.
#[derive(Debug)]
pub struct Inbox {
    receiver: mpsc::Receiver<Input>,
}

/// An inbox and the end that fills it.
pub fn inbox() -> (mpsc::Sender<Input>, Inbox) {
    let (sender, receiver) = mpsc::channel(INBOX_CAPACITY);
    (sender, Inbox { receiver })
}

impl Inbox {
    /// Waits for input, then takes what is there, at most a batch. Empty when nobody can bring anything any more.
    /// May be dropped while it waits: nothing is lost then.
    pub(super) async fn take(&mut self) -> Vec<Input> {
        let mut batch = Vec::new();
        self.receiver.recv_many(&mut batch, BATCH).await;
        coalesce(batch)
    }
}

/// Leaves out versions of an object that a later one in the same batch replaces. The later version takes the
/// place of the earlier, as if the watch had been quicker.
///
/// Only levels are left out. Whatever else arrives (a disappearance, the outcome of a write, the end of a
/// listing) keeps its place, and no level moves across it.
fn coalesce(batch: Vec<Input>) -> Vec<Input> {
    let mut kept: Vec<Input> = Vec::with_capacity(batch.len());
    let mut places: HashMap<(Kind, Uid), usize> = HashMap::new();
    for input in batch {
        match &input {
            Input::Object(object) => {
                let place = places.entry((object.kind, object.uid.clone())).or_insert(kept.len());
                match kept.get_mut(*place) {
                    Some(earlier) => *earlier = input,
                    None => kept.push(input),
                }
            }
            // Reports and observations have their own order, per spoke, and do not touch objects.
            Input::Spoke(..) => kept.push(input),
            Input::Gone { .. } | Input::Synced(_) | Input::Outcome(..) | Input::Turn | Input::Tick => {
                places.clear();
                kept.push(input);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fairlead_model::{ObjectKey, SpokeId};
    use serde_json::Value;

    use super::*;
    use crate::ports::{Object, OpId, Outcome, SpokeEvent};

    fn object(uid: &str, version: u64) -> Input {
        Input::Object(Object {
            kind: Kind::Job,
            key: ObjectKey::new("ns", uid),
            uid: Uid::new(uid),
            version,
            json: Arc::new(Value::Null),
        })
    }

    fn gone(uid: &str) -> Input {
        Input::Gone { kind: Kind::Job, key: ObjectKey::new("ns", uid), uid: Uid::new(uid), version: 9 }
    }

    fn short(batch: Vec<Input>) -> Vec<String> {
        coalesce(batch)
            .into_iter()
            .map(|input| match input {
                Input::Object(object) => format!("{}@{}", object.uid, object.version),
                Input::Gone { uid, .. } => format!("-{uid}"),
                Input::Synced(_) => "synced".to_owned(),
                Input::Outcome(id, _) => format!("#{}", id.0),
                Input::Spoke(spoke, _) => spoke.to_string(),
                Input::Turn | Input::Tick => "time".to_owned(),
            })
            .collect()
    }

    #[test]
    fn a_later_level_replaces_an_earlier_one_of_the_same_object() {
        let batch = vec![object("a", 1), object("b", 2), object("a", 3), object("a", 4)];
        assert_eq!(short(batch), ["a@4", "b@2"]);
    }

    #[test]
    fn levels_do_not_move_across_what_is_not_a_level() {
        let batch = vec![object("a", 1), gone("a"), object("b", 2), Input::Synced(Kind::Job), object("b", 3)];
        assert_eq!(short(batch), ["a@1", "-a", "b@2", "synced", "b@3"]);
        let batch = vec![object("a", 1), Input::Outcome(OpId(7), Outcome::Conflict), object("a", 2)];
        assert_eq!(short(batch), ["a@1", "#7", "a@2"]);
    }

    #[test]
    fn what_spokes_say_is_kept_whole_and_in_order() {
        let beat = || Input::Spoke(SpokeId::new("s"), SpokeEvent::Heartbeat);
        assert_eq!(short(vec![object("a", 1), beat(), object("a", 2), beat()]), ["a@2", "s", "s"]);
    }
}
