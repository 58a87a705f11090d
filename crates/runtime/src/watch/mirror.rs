//! What the receiver of a watch has been told, so that a listing can be turned into differences.

use std::collections::HashMap;

use fairlead_model::{ObjectKey, Uid};

use super::Event;
use super::http::Listing;
use crate::object::Object;

/// UID and version of every object that was reported and is not gone.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    known: HashMap<ObjectKey, (Uid, u64)>,
}

impl Mirror {
    /// The differences between what was reported and a complete listing.
    pub(super) fn relist(&mut self, listing: Listing) -> Vec<Event> {
        let listed: HashMap<ObjectKey, Uid> =
            listing.objects.iter().map(|object| (object.key.clone(), object.uid.clone())).collect();
        let mut vanished: Vec<_> = self
            .known
            .iter()
            .filter(|(key, _)| !listed.contains_key(*key))
            .map(|(key, _)| key.clone())
            .collect();
        vanished.sort();
        let mut events: Vec<_> =
            vanished.into_iter().filter_map(|key| self.vanish(key, listing.version)).collect();
        for object in listing.objects {
            events.extend(self.upsert(object));
        }
        events
    }

    /// An object was reported as added or modified.
    pub(super) fn upsert(&mut self, object: Object) -> Vec<Event> {
        let mut events = Vec::with_capacity(1);
        match self.known.get(&object.key) {
            Some((uid, version)) if *uid == object.uid && *version >= object.version => return events,
            // Deleted and created anew while nobody looked.
            Some((uid, _)) if *uid != object.uid => {
                events.extend(self.vanish(object.key.clone(), object.version));
            }
            Some(_) | None => {}
        }
        self.known.insert(object.key.clone(), (object.uid.clone(), object.version));
        events.push(Event::Upsert(object));
        events
    }

    /// An object was reported as deleted.
    pub(super) fn delete(&mut self, object: Object) -> Vec<Event> {
        match self.known.get(&object.key) {
            Some((uid, _)) if *uid == object.uid => {
                self.known.remove(&object.key);
                let (key, uid, version) = (object.key.clone(), object.uid.clone(), object.version);
                vec![Event::Gone { key, uid, version, last: Some(object) }]
            }
            Some(_) | None => Vec::new(),
        }
    }

    fn vanish(&mut self, key: ObjectKey, version: u64) -> Option<Event> {
        let (uid, _) = self.known.remove(&key)?;
        Some(Event::Gone { key, uid, version, last: None })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, uid: &str, version: u64) -> Object {
        Object::from_json(
            json!({"metadata": {"name": name, "uid": uid, "resourceVersion": version.to_string()}}),
        )
        .unwrap()
    }

    fn listing(version: u64, objects: Vec<Object>) -> Listing {
        Listing { objects, version }
    }

    /// Events in short: `+name/uid@version` and `-name/uid@version`, with `*` where the last state came along.
    fn short(events: &[Event]) -> Vec<String> {
        events
            .iter()
            .map(|event| match event {
                Event::Upsert(object) => format!("+{}/{}@{}", object.key, object.uid, object.version),
                Event::Gone { key, uid, version, last } => {
                    format!("-{key}/{uid}@{version}{}", if last.is_some() { "*" } else { "" })
                }
                Event::Synced => "synced".to_owned(),
            })
            .collect()
    }

    #[test]
    fn a_gap_reports_what_vanished_what_is_new_and_what_was_replaced() {
        let mut mirror = Mirror::default();
        let first = listing(10, vec![object("a", "a1", 3), object("b", "b1", 4), object("c", "c1", 5)]);
        assert_eq!(short(&mirror.relist(first)), ["+a/a1@3", "+b/b1@4", "+c/c1@5"]);
        let second = listing(20, vec![object("b", "b2", 15), object("c", "c1", 5), object("d", "d1", 16)]);
        assert_eq!(short(&mirror.relist(second)), ["-a/a1@20", "-b/b1@15", "+b/b2@15", "+d/d1@16"]);
    }

    #[test]
    fn repeated_and_older_events_are_dropped() {
        let mut mirror = Mirror::default();
        assert_eq!(short(&mirror.upsert(object("a", "a1", 3))), ["+a/a1@3"]);
        assert!(mirror.upsert(object("a", "a1", 3)).is_empty());
        assert!(mirror.upsert(object("a", "a1", 2)).is_empty());
        assert_eq!(short(&mirror.delete(object("a", "a1", 7))), ["-a/a1@7*"]);
        assert!(mirror.delete(object("a", "a1", 7)).is_empty());
    }

    #[test]
    fn a_late_delete_of_an_earlier_uid_leaves_the_new_object() {
        let mut mirror = Mirror::default();
        mirror.upsert(object("a", "a2", 9));
        assert!(mirror.delete(object("a", "a1", 8)).is_empty());
        assert_eq!(short(&mirror.upsert(object("a", "a2", 10))), ["+a/a2@10"]);
    }
}
