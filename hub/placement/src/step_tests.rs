//! Tests of the transitions: the usual courses by hand, everything else by property.

use fairlead_model::{Epoch, Reason};

use super::*;
use crate::state::{Promise, Restored};

const NOW: Now = Now { wall: Millis(1_000_000), mono: Millis(5_000) };
const MARK: Mark = Mark { boot: 1, version: 1 };

fn promise() -> Promise {
    Promise { run: "run".into(), spoke: "spoke".into(), epoch: Epoch::new(1, 1) }
}

/// A placement after these events, and the effects of the last.
fn play(placement: Placement, events: &[Event]) -> (Placement, Vec<Effect>) {
    events.iter().fold((placement, Vec::new()), |(placement, _), event| {
        let Step { next, effects } = step(placement, event, NOW);
        (next, effects)
    })
}

fn new() -> Placement {
    Placement::new(promise())
}

fn seen(sighting: Sighting) -> Event {
    Event::Seen(sighting, MARK)
}

fn refused() -> Event {
    seen(Sighting::Refused { reason: Reason::NoRoom, detail: "full".into() })
}

fn to_running() -> Vec<Event> {
    vec![Event::Begin, seen(Sighting::Accepted), Event::Committed, seen(Sighting::Live)]
}

#[test]
fn the_usual_course() {
    let (placement, effects) = play(new(), &[Event::Begin]);
    assert_eq!(effects, [Effect::Order(Order::Prepare)]);
    assert_eq!(placement.state(), &State::Preparing { deadline: Millis(7_000) });
    let (placement, effects) = play(placement, &[seen(Sighting::Accepted)]);
    assert_eq!(effects, [Effect::Commit, Effect::Acknowledge(MARK)]);
    let (placement, effects) = play(placement, &[Event::Committed]);
    assert_eq!(effects, [Effect::Order(Order::Start)]);
    let (placement, effects) = play(placement, &[seen(Sighting::Live)]);
    assert_eq!((placement.state(), effects), (&State::Running, vec![Effect::Acknowledge(MARK)]));
    let (placement, effects) = play(placement, &[seen(Sighting::Ended)]);
    assert_eq!(effects, [Effect::StoreResult], "a result is acknowledged only once it is durable");
    let (placement, effects) = play(placement, &[Event::Stored]);
    assert_eq!(effects, [Effect::Acknowledge(MARK)]);
    let (placement, effects) = play(placement, &[Event::Stop(StopCause::Retired)]);
    assert_eq!(effects, [Effect::Order(Order::Stop(StopCause::Retired))]);
    let (placement, effects) = play(placement, &[seen(Sighting::Stopped { ended: true })]);
    assert_eq!(effects, [Effect::Withdraw, Effect::Release]);
    let (_, effects) = play(placement, &[Event::Stored]);
    assert_eq!(effects, [Effect::Acknowledge(MARK)], "the proof too");
}

#[test]
fn silence_and_refusal_close_without_a_proof_before_the_commit() {
    let late = Now { mono: Millis(7_000), ..NOW };
    let (placement, _) = play(new(), &[Event::Begin]);
    let early = step(placement.clone(), &Event::Tick, Now { mono: Millis(6_999), ..NOW });
    assert_eq!(early.effects, []);
    let step = step(placement, &Event::Tick, late);
    assert_eq!(step.next.state(), &State::Closed(Closing::NoAnswer));
    assert_eq!(step.effects, [Effect::Withdraw, Effect::Release]);
    let (placement, effects) = play(step.next, &[seen(Sighting::Accepted)]);
    assert_eq!(effects, [Effect::Acknowledge(MARK)], "a late yes changes nothing");
    assert!(placement.state().is_closed());

    let (placement, effects) = play(new(), &[Event::Begin, refused()]);
    assert_eq!(effects, [Effect::Withdraw, Effect::Release, Effect::Acknowledge(MARK)]);
    assert!(matches!(placement.state(), State::Closed(Closing::Refused { .. })));
}

#[test]
fn a_refused_start_is_proof_even_after_the_copy_was_seen() {
    let mut events = to_running();
    events.push(refused());
    let (placement, _) = play(new(), &events);
    assert!(matches!(placement.state(), State::Closed(Closing::Refused { .. })));
}

#[test]
fn a_stop_before_the_commit_needs_no_proof_and_one_after_it_does() {
    let stop = Event::Stop(StopCause::Deleted);
    let (placement, effects) = play(new(), &[Event::Begin, seen(Sighting::Accepted), stop.clone()]);
    assert_eq!(placement.state(), &State::Closed(Closing::Released));
    assert_eq!(effects, [Effect::Withdraw, Effect::Release]);

    let start = [Event::Begin, seen(Sighting::Accepted), Event::Committed, stop];
    let (placement, effects) = play(new(), &start);
    assert_eq!(effects, [Effect::Order(Order::Stop(StopCause::Deleted))]);
    let (placement, effects) = play(placement, &[Event::Committed, seen(Sighting::Live)]);
    assert_eq!(effects, [Effect::Acknowledge(MARK)], "no start after a stop");
    assert_eq!(placement.state(), &State::Stopping(StopCause::Deleted));
}

#[test]
fn a_session_that_ends_voids_prepare_and_start_and_nothing_else() {
    let (placement, _) = play(new(), &[Event::Begin, Event::Disconnected]);
    assert_eq!(placement.state(), &State::Closed(Closing::Released));

    let begun = [Event::Begin, seen(Sighting::Accepted), Event::Committed, Event::Disconnected];
    let (placement, effects) = play(new(), &begun);
    assert_eq!(effects, [Effect::Withdraw]);
    let (again, effects) = play(placement.clone(), &[Event::Inventory { present: false }]);
    assert_eq!(effects, [Effect::Order(Order::Start)], "absent: started again, which is idempotent");
    assert_eq!(again.state(), &State::Starting);
    let (_, effects) = play(placement, &[seen(Sighting::Live), Event::Inventory { present: true }]);
    assert_eq!(effects, [Effect::Order(Order::Keep)], "present: kept");

    let mut events = to_running();
    events.push(Event::Disconnected);
    let (placement, effects) = play(new(), &events);
    assert_eq!(effects, [Effect::Order(Order::Keep)], "a start in force must not outlive its session");
    assert_eq!(placement.state(), &State::Running);
}

#[test]
fn a_copy_that_vanished_is_reported_and_never_started_again() {
    let mut events = to_running();
    events.push(seen(Sighting::Vanished));
    let (placement, effects) = play(new(), &events);
    assert_eq!(effects, [Effect::Withdraw, Effect::ReportVanished, Effect::Acknowledge(MARK)]);
    let (placement, effects) = play(placement, &[Event::Inventory { present: false }]);
    assert_eq!(effects, []);
    let (_, effects) = play(placement, &[Event::Stop(StopCause::Deleted)]);
    assert_eq!(effects, [Effect::Order(Order::Stop(StopCause::Deleted))], "its end still needs a proof");
}

#[test]
fn a_new_leader_orders_only_what_the_inventory_asks_for() {
    let absent = Event::Inventory { present: false };
    let present = Event::Inventory { present: true };
    let restored = |known| Placement::restored(promise(), known);
    let orders = |known, event: &Event| play(restored(known), std::slice::from_ref(event)).1;
    assert_eq!(orders(Restored::Committed, &absent), [Effect::Order(Order::Start)]);
    assert_eq!(
        orders(Restored::Committed, &present),
        [Effect::Order(Order::Start)],
        "accepted, never started"
    );
    assert_eq!(orders(Restored::Seen, &present), [Effect::Order(Order::Keep)]);
    assert_eq!(orders(Restored::Seen, &absent), [Effect::ReportVanished]);
    assert_eq!(orders(Restored::Finished, &absent), [Effect::Release], "what has ended cannot run");
    let stop = [Effect::Order(Order::Stop(StopCause::Deleted))];
    assert_eq!(orders(Restored::Deleted, &absent), stop);
    assert_eq!(orders(Restored::Deleted, &present), stop);
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    fn event() -> impl Strategy<Value = Event> {
        let cause = prop_oneof![Just(StopCause::Deleted), Just(StopCause::Evicted), Just(StopCause::Retired)];
        prop_oneof![
            Just(Event::Begin),
            Just(Event::Committed),
            Just(Event::Abandon),
            Just(Event::Stored),
            Just(Event::Disconnected),
            Just(Event::Silent),
            Just(Event::Tick),
            any::<bool>().prop_map(|present| Event::Inventory { present }),
            cause.prop_map(Event::Stop),
            Just(seen(Sighting::Accepted)),
            Just(refused()),
            Just(seen(Sighting::Live)),
            Just(seen(Sighting::Ended)),
            Just(seen(Sighting::Stopping)),
            any::<bool>().prop_map(|ended| seen(Sighting::Stopped { ended })),
            Just(seen(Sighting::Vanished)),
        ]
    }

    proptest! {
        /// Whatever happens in whatever order: a start only after a commit, none after a stop or once seen, and
        /// after a commit no end without proof.
        #[test]
        fn promises_hold(events in prop::collection::vec(event(), 0..40)) {
            let mut placement = new();
            let (mut committed, mut stopping, mut was_seen) = (false, false, false);
            for event in events {
                let before = placement.state().clone();
                let Step { next, effects } = step(placement, &event, NOW);
                committed |= event == Event::Committed && before == State::Accepted;
                was_seen |= matches!(next.state(), State::Running | State::Finished { .. } | State::Vanished);
                if effects.contains(&Effect::Order(Order::Start)) {
                    prop_assert!(committed && !stopping && !was_seen);
                }
                stopping |= matches!(next.state(), State::Stopping(_));
                if next.state().is_closed() && !before.is_closed() && before.is_committed() {
                    let proof = matches!(&event, Event::Seen(Sighting::Refused { .. } | Sighting::Stopped { .. }, _));
                    let ended = matches!(before, State::Finished { stored: true });
                    prop_assert!(proof || ended, "{before:?} closed by {event:?}");
                }
                if before.is_closed() {
                    prop_assert_eq!(next.state(), &before);
                    prop_assert!(effects.iter().all(|effect| matches!(effect, Effect::Acknowledge(_))));
                }
                if matches!(event, Event::Seen(Sighting::Ended, _)) && !matches!(before, State::Finished { stored: true } | State::Stopping(_)) {
                    prop_assert!(!effects.contains(&Effect::Acknowledge(MARK)));
                }
                placement = next;
            }
        }
    }
}
