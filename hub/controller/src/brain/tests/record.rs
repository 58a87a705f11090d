//! What the brain records is decided again, piece by piece.

use fairlead_engine::record::replay;

use crate::brain::Effect;
use crate::brain::tape::Tape;
use crate::brain::testing::{Hub, queue_set};

/// The records of a hub, each whole.
fn records(hub: &Hub) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    for effect in &hub.log {
        if let Effect::Record { begins, bytes } = effect {
            if *begins {
                all.push(Vec::new());
            }
            all.last_mut().expect("a record begins before it goes on").extend(bytes);
        }
    }
    all
}

#[test]
fn every_piece_of_the_record_is_decided_again() {
    let mut hub = Hub::empty();
    hub.brain.tape = Some(Tape::new(1500));
    for object in queue_set("cq", "8", true) {
        hub.apply(object);
    }
    hub.join("a");
    hub.join("b");
    hub.settle();
    for name in ["one", "two", "three", "four", "five", "six"] {
        hub.submit(name, "3");
    }
    hub.disconnect("a");
    hub.submit("seven", "1");
    let records = records(&hub);
    assert!(records.len() > 1, "{} pieces", records.len());
    let mut next = 0;
    for record in records {
        let report = replay(&record).unwrap();
        assert_eq!((report.first, report.differs), (next, None));
        next = report.first + report.decisions;
    }
    assert!(next > 6, "{next} decisions");
}

#[test]
fn nothing_is_recorded_unless_it_is_asked_for() {
    let mut hub = Hub::with_spokes(&["a"]);
    hub.submit("one", "3");
    assert_eq!(records(&hub).len(), 0);
}
