//! The rules of the protocol one by one.

use fairlead_model::{Floor, Millis, Reason};
use fairlead_session::{
    BucketHashes, Hello, HubFrame, HubInput, PROTOCOL, Report, SessionEvent, SpokeFrame, SpokeInput,
    Versions, Welcome,
};

use crate::fixture::{WINDOW, World, key, leader, leader_with, live, start, stop, stopped};

fn in_step() -> World {
    let mut world = World::new();
    world.connect();
    world.settle();
    world.assert_in_step();
    world
}

fn last_refusal(world: &World) -> Option<Reason> {
    match world.brain.events.last() {
        Some(SessionEvent::Refused(goodbye) | SessionEvent::Disconnected(Some(goodbye))) => {
            Some(goodbye.reason)
        }
        _ => None,
    }
}

#[test]
fn orders_wait_for_the_durable_floor() {
    let mut world = World::new();
    world.agent.hold_floor = true;
    world.want(1, start(1, 1));
    world.have(2, live(2, 1, 1));
    world.connect();
    world.settle();
    assert_eq!(world.agent.held, [Floor::from(&leader(1))]);
    assert!(world.agent.established.is_none() && world.agent.in_force.is_empty());
    assert!(!world.brain.up, "the hub must not count on a spoke that has not said Ready");
    assert_eq!(world.spoke.floor(), &Floor::default());

    world.agent.stored = Floor::from(&leader(1));
    world.spoke(SpokeInput::FloorStored(Floor::from(&leader(1))));
    world.settle();
    world.assert_in_step();
}

/// The write was asked for by one session and is done in the next.
#[test]
fn a_floor_that_is_still_being_stored_binds_already() {
    let mut world = World::new();
    world.agent.hold_floor = true;
    world.restart_hub(leader(5));
    world.connect();
    world.settle();
    world.restart_hub(leader(4));
    world.connect();
    world.settle();
    assert_eq!(last_refusal(&world), Some(Reason::StaleTerm));

    world.restart_hub(leader(5));
    world.connect();
    world.settle();
    assert_eq!(world.agent.held.len(), 2, "asked again, since the first write may have been lost");
    world.agent.stored = Floor::from(&leader(5));
    world.spoke(SpokeInput::FloorStored(Floor::from(&leader(5))));
    world.settle();
    world.assert_in_step();
}

/// The write for an earlier leader comes back while a later one waits for its own.
#[test]
fn only_the_leaders_own_floor_opens_its_session() {
    let mut world = World::new();
    world.agent.hold_floor = true;
    for term in [5, 6] {
        world.restart_hub(leader(term));
        world.connect();
        world.settle();
    }
    world.agent.stored = Floor::from(&leader(5));
    world.spoke(SpokeInput::FloorStored(Floor::from(&leader(5))));
    assert!(world.agent.established.is_none());
    world.agent.stored = Floor::from(&leader(6));
    world.spoke(SpokeInput::FloorStored(Floor::from(&leader(6))));
    world.settle();
    world.assert_in_step();
}

#[test]
fn an_older_leader_is_refused_by_both_ends() {
    let mut world = in_step();
    world.restart_hub(leader(3));
    world.connect();
    world.settle();
    world.restart_hub(leader(2));
    world.connect();
    world.deliver_up();
    assert_eq!(last_refusal(&world), Some(Reason::StaleTerm), "the hub sees it in the Hello");
    world.settle();
    assert_eq!(world.agent.closed.last().unwrap().reason, Reason::StaleTerm);

    // A hub that does not look at the floor meets the spoke's own judgement.
    world.connect();
    world.down.clear();
    world.spoke(SpokeInput::Frame(welcome(leader(2))));
    assert_eq!(world.agent.closed.last().unwrap().reason, Reason::StaleTerm);
    assert!(world.agent.established.is_none());
    assert_eq!(world.agent.stored, Floor::from(&leader(3)));
}

fn welcome(leadership: fairlead_model::Leadership) -> HubFrame {
    HubFrame::Welcome(Welcome {
        protocol: PROTOCOL,
        leadership,
        versions: Versions::default(),
        heartbeat_ms: 10_000,
        observations: BucketHashes::default(),
        commands: BucketHashes::default(),
    })
}

#[test]
fn two_leaders_of_one_term_are_both_refused_until_a_higher_term() {
    let mut world = in_step();
    for claimant in ["b", "a", "b"] {
        world.restart_hub(leader_with(1, 1, claimant));
        world.connect();
        world.settle();
        assert_eq!(last_refusal(&world), Some(Reason::SplitBrain), "{claimant}");
        assert!(world.agent.established.is_none());
    }
    world.restart_agent(2);
    world.restart_hub(leader_with(1, 1, "a"));
    world.connect();
    world.settle();
    assert_eq!(last_refusal(&world), Some(Reason::SplitBrain), "a restart of the agent does not forget it");
    world.restart_hub(leader_with(1, 2, "a"));
    world.connect();
    world.settle();
    world.assert_in_step();
}

#[test]
fn a_new_incarnation_outranks_any_term() {
    let mut world = World::new();
    world.restart_hub(leader_with(1, 9, "a"));
    world.connect();
    world.settle();
    world.restart_hub(leader_with(2, 1, "b"));
    world.connect();
    world.settle();
    world.assert_in_step();
    assert_eq!(world.agent.stored, Floor::from(&leader_with(2, 1, "b")));
}

/// The present leader vouches for promises that an earlier one committed.
#[test]
fn commands_of_earlier_terms_are_obeyed_in_a_later_leaders_session() {
    let mut world = in_step();
    world.want(1, start(1, 1));
    world.restart_hub(leader(7));
    world.connect();
    world.settle();
    world.assert_in_step();
    assert!(world.agent.in_force[&key(1)].epoch.term < leader(7).term);
}

#[test]
fn orders_end_with_their_session_and_come_again_in_the_next() {
    let mut world = in_step();
    world.want(1, start(1, 1));
    world.want(2, start(2, 1));
    world.settle();
    assert_eq!(world.agent.in_force.len(), 2);
    world.cut();
    assert_eq!(world.agent.voids, 1);
    assert!(world.agent.in_force.is_empty());
    world.cut();
    assert_eq!(world.agent.voids, 1, "said once");

    world.want_nothing(2);
    world.entries_sent = (0, 0);
    world.agent.orders.clear();
    world.connect();
    world.settle();
    world.assert_in_step();
    assert_eq!(world.agent.orders, [key(1)], "order 2 is not handed over, not even for a moment");
    assert_eq!(world.entries_sent.1, 0, "command 1 is known to the spoke and does not travel again");
}

#[test]
fn a_command_that_changes_in_flight_arrives_once_more_with_its_newest_value() {
    let mut world = in_step();
    world.entries_sent = (0, 0);
    world.want(1, start(1, 1));
    for revision in 2..10 {
        world.want(1, stop(1, revision));
    }
    world.settle();
    assert_eq!(world.agent.in_force[&key(1)], stop(1, 9));
    assert_eq!(world.entries_sent.1, 2);
}

/// An entry that is removed while it waits for a place in the window leaves no trace that would block it later.
#[test]
fn an_entry_that_is_removed_while_it_waits_can_come_back() {
    let mut world = in_step();
    let beyond = u64::try_from(WINDOW).unwrap() + 1;
    for i in 1..=beyond {
        world.want(i, start(i, 1));
        world.have(i, live(i, 1, 1));
    }
    world.want_nothing(beyond);
    world.have_nothing(beyond);
    world.settle();
    world.assert_in_step();
    world.want(beyond, start(beyond, 2));
    world.have(beyond, live(beyond, 1, 2));
    world.settle();
    world.assert_in_step();
}

#[test]
fn an_acknowledgement_of_an_older_observation_is_not_passed_on() {
    let mut world = in_step();
    world.have(1, live(1, 1, 1));
    world.settle();
    world.acknowledge(1);
    world.have(1, stopped(1, 1, 2));
    world.settle();
    assert!(world.agent.acknowledged.is_empty());
    let old = live(1, 1, 1);
    let (epoch, boot, version) = (old.epoch, old.boot, old.version);
    world.hub(HubInput::Acknowledge { placement: key(1), epoch, boot, version });
    assert!(world.down.is_empty(), "the hub knows a newer one, so it says nothing");
    world.acknowledge(1);
    world.settle();
    assert!(world.agent.acknowledged.contains(&key(1)));
}

#[test]
fn an_acknowledgement_that_was_lost_is_repeated() {
    let mut world = in_step();
    world.have(1, stopped(1, 1, 1));
    world.settle();
    world.acknowledge(1);
    world.cut();
    assert!(world.agent.acknowledged.is_empty());
    world.connect();
    world.settle();
    assert!(world.agent.acknowledged.contains(&key(1)));
}

#[test]
fn what_the_spoke_forgot_while_away_is_forgotten() {
    let mut world = in_step();
    for i in 1..=5 {
        world.have(i, live(i, 1, i));
    }
    world.settle();
    world.cut();
    (1..=3).for_each(|i| world.have_nothing(i));
    world.connect();
    world.have_nothing(4);
    world.settle();
    world.assert_in_step();
    assert_eq!(world.brain.view.len(), 1);
}

#[test]
fn the_newest_report_follows_each_start() {
    let mut world = World::new();
    world.spoke(SpokeInput::Report(Report { version: 1, ..Report::default() }));
    world.spoke(SpokeInput::Report(Report { version: 2, nodes: 3, ..Report::default() }));
    world.connect();
    world.settle();
    let reports = |world: &World| {
        let reports = world.brain.events.iter().filter_map(|event| match event {
            SessionEvent::Report(report) => Some(report.version),
            _ => None,
        });
        reports.collect::<Vec<_>>()
    };
    assert_eq!(reports(&world), [2]);
    world.spoke(SpokeInput::Report(Report { version: 3, ..Report::default() }));
    world.settle();
    world.cut();
    world.connect();
    world.settle();
    assert_eq!(reports(&world), [2, 3, 3]);
}

#[test]
fn heartbeats_come_at_once_and_then_at_their_interval() {
    let mut world = in_step();
    let beats = |world: &World| {
        let beats = world.brain.events.iter().filter_map(|event| match event {
            SessionEvent::Heartbeat(sent) => Some(sent.0),
            _ => None,
        });
        beats.collect::<Vec<_>>()
    };
    assert_eq!(beats(&world), [1_000_000]);
    assert_eq!(world.spoke.next_deadline(), Some(Millis(10_000)));
    world.mono = 9_999;
    world.spoke(SpokeInput::Tick);
    world.settle();
    assert_eq!(beats(&world).len(), 1);
    world.mono = 10_000;
    world.spoke(SpokeInput::Tick);
    world.settle();
    assert_eq!(beats(&world), [1_000_000, 1_010_000]);
    assert_eq!(world.hub.next_deadline(), Some(Millis(40_000)));
}

#[test]
fn a_spoke_gives_up_after_three_unanswered_heartbeats() {
    let mut world = in_step();
    for beat in 1..=3 {
        world.mono = beat * 10_000;
        world.spoke(SpokeInput::Tick);
        assert!(world.agent.closed.is_empty(), "{beat}");
    }
    world.mono = 40_000;
    world.spoke(SpokeInput::Tick);
    assert_eq!(world.agent.closed.last().unwrap().reason, Reason::NoAnswer);
    assert_eq!(world.agent.voids, 1);
    assert_eq!(world.spoke.next_deadline(), None);
}

#[test]
fn a_hub_gives_up_after_three_silent_intervals() {
    let mut world = in_step();
    world.mono = 29_999;
    world.hub(HubInput::Tick);
    assert!(world.brain.up);
    world.mono = 30_000;
    world.hub(HubInput::Tick);
    assert_eq!(last_refusal(&world), Some(Reason::NoAnswer));
    assert!(!world.brain.up);
}

#[test]
fn a_peer_that_never_answers_the_opening_is_given_up() {
    let mut world = World::new();
    world.connect();
    world.up.clear();
    world.mono = 10_000;
    world.spoke(SpokeInput::Tick);
    assert_eq!(world.agent.closed.last().unwrap().reason, Reason::NoAnswer);
    world.mono = 30_000;
    world.hub(HubInput::Tick);
    assert_eq!(last_refusal(&world), Some(Reason::NoAnswer));
}

#[test]
fn a_second_connection_replaces_the_first() {
    let mut world = in_step();
    world.connect();
    world.settle();
    world.assert_in_step();
    let disconnected =
        world.brain.events.iter().filter(|e| matches!(e, SessionEvent::Disconnected(None))).count();
    assert_eq!(disconnected, 1);
}

fn hello(protocol: u32) -> SpokeFrame {
    SpokeFrame::Hello(Hello {
        protocol,
        floor: Floor::default(),
        boot: 1,
        versions: Versions::default(),
        cluster_uid: "uid".into(),
        clock: Millis(1_000_250),
        observations: BucketHashes::default(),
        commands: BucketHashes::default(),
    })
}

#[test]
fn another_protocol_is_refused_by_name() {
    for protocol in [0, PROTOCOL + 1, u32::MAX] {
        let mut world = World::new();
        world.hub(HubInput::Connected);
        world.hub(HubInput::Frame(hello(protocol)));
        assert_eq!(last_refusal(&world), Some(Reason::UnsupportedProtocol), "{protocol}");
    }
    let mut world = World::new();
    world.connect();
    let HubFrame::Welcome(mut answer) = welcome(leader(1)) else { unreachable!() };
    answer.protocol = PROTOCOL + 2;
    world.spoke(SpokeInput::Frame(HubFrame::Welcome(answer.clone())));
    assert_eq!(world.agent.closed.last().unwrap().reason, Reason::UnsupportedProtocol);
    world.connect();
    answer.protocol = PROTOCOL + 1;
    world.spoke(SpokeInput::Frame(HubFrame::Welcome(answer)));
    assert!(world.agent.established.is_some(), "a hub one version ahead is obeyed");
}

#[test]
fn the_clock_offset_is_measured_at_the_hello() {
    let mut world = World::new();
    world.hub(HubInput::Connected);
    world.hub(HubInput::Frame(hello(PROTOCOL)));
    world.mono = 500;
    world.hub(HubInput::Frame(SpokeFrame::Ready));
    assert!(matches!(
        world.brain.events.last(),
        Some(SessionEvent::Connected { clock_offset_ms: 250, boot: 1, .. })
    ));
}

/// Frames out of turn end the session, and never reach brain or agent.
#[test]
fn frames_out_of_turn_end_the_session() {
    let from_spoke = [
        SpokeFrame::Ready,
        SpokeFrame::Observe(key(1), live(1, 1, 1)),
        SpokeFrame::InventoryComplete,
        SpokeFrame::Heartbeat(1, Millis(0)),
    ];
    for frame in from_spoke {
        let mut world = World::new();
        world.hub(HubInput::Connected);
        world.hub(HubInput::Frame(frame.clone()));
        assert_eq!(last_refusal(&world), Some(Reason::ProtocolViolation), "{frame:?}");
        world.hub(HubInput::Frame(frame));
        assert_eq!(world.brain.events.len(), 1, "frames after the end are dropped");
    }
    let from_hub =
        [HubFrame::Command(key(1), start(1, 1)), HubFrame::Withdraw(key(1)), HubFrame::CommandsComplete];
    for frame in from_hub {
        let mut world = World::new();
        world.agent.hold_floor = true;
        world.connect();
        world.spoke(SpokeInput::Frame(frame.clone()));
        assert_eq!(world.agent.closed.last().unwrap().reason, Reason::ProtocolViolation, "{frame:?}");
        world.connect();
        world.spoke(SpokeInput::Frame(welcome(leader(1))));
        world.spoke(SpokeInput::Frame(frame.clone()));
        assert_eq!(world.agent.closed.len(), 2, "nor before the floor is durable: {frame:?}");
    }
    let mut world = in_step();
    world.hub(HubInput::Frame(SpokeFrame::InventoryComplete));
    assert_eq!(last_refusal(&world), Some(Reason::ProtocolViolation));
    let mut world = in_step();
    world.spoke(SpokeInput::Frame(welcome(leader(1))));
    assert_eq!(world.agent.closed.last().unwrap().reason, Reason::ProtocolViolation);
}

#[test]
fn a_goodbye_ends_the_session_with_its_reason() {
    let mut world = in_step();
    let goodbye = fairlead_session::Goodbye {
        reason: Reason::IdentityRevoked,
        detail: "revoked by an admin".into(),
        retry_after_ms: 7_000,
        incarnation: fairlead_model::Incarnation(1),
    };
    world.spoke(SpokeInput::Frame(HubFrame::Goodbye(goodbye.clone())));
    assert_eq!(world.agent.closed, vec![goodbye.clone()]);
    assert_eq!(world.agent.voids, 1);
    world.hub(HubInput::Frame(SpokeFrame::Goodbye(goodbye)));
    assert_eq!(last_refusal(&world), Some(Reason::IdentityRevoked));
}
