//! Every frame survives the wire, and no bytes can harm the reader.

use std::sync::Arc;

use fairlead_model::{
    Epoch, Floor, Incarnation, Leadership, Millis, NodeClass, Nonce, PlacementId, PodDemand, Reason,
    Resources, RunId, Shape, Taint, TaintEffect, Term,
};
use fairlead_session::{
    BucketHashes, Command, CopyState, CopyStatus, Desired, Goodbye, Hello, HubFrame, Intent, Observation,
    Refusal, Report, SpokeFrame, StopCause, Terminal, Versions, Welcome,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use prost::Message;

use super::{Frame, WireError};
use crate::parts::{Joiner, MAX_MESSAGE, cut};
use crate::wire;

fn text() -> impl Strategy<Value = Arc<str>> {
    "\\PC{0,12}".prop_map(Arc::from)
}

fn id() -> impl Strategy<Value = String> {
    "[a-z0-9-]{1,12}"
}

fn placement() -> impl Strategy<Value = PlacementId> {
    id().prop_map(PlacementId::new)
}

fn epoch() -> impl Strategy<Value = Epoch> {
    any::<(u64, u64)>().prop_map(|(term, seq)| Epoch::new(term, seq))
}

fn leadership() -> impl Strategy<Value = Leadership> {
    (any::<(u64, u64)>(), text()).prop_map(|((incarnation, term), nonce)| Leadership {
        incarnation: Incarnation(incarnation),
        term: Term(term),
        nonce: Nonce(nonce),
    })
}

fn resources() -> impl Strategy<Value = Resources> {
    btree_map(text(), any::<i64>(), 0..4).prop_map(|amounts| amounts.into_iter().collect())
}

fn millis() -> impl Strategy<Value = Millis> {
    any::<i64>().prop_map(Millis)
}

fn reason() -> impl Strategy<Value = Reason> {
    proptest::sample::select(Reason::ALL)
}

fn versions() -> impl Strategy<Value = Versions> {
    (text(), text()).prop_map(|(fairlead, kubernetes)| Versions { fairlead, kubernetes })
}

fn buckets() -> impl Strategy<Value = BucketHashes> {
    vec(any::<u64>(), 0..65).prop_map(BucketHashes)
}

fn goodbye() -> impl Strategy<Value = Goodbye> {
    (reason(), text(), any::<u32>(), any::<u64>()).prop_map(
        |(reason, detail, retry_after_ms, incarnation)| Goodbye {
            reason,
            detail,
            retry_after_ms,
            incarnation: Incarnation(incarnation),
        },
    )
}

fn intent() -> impl Strategy<Value = Intent> {
    let demand = (resources(), any::<u32>()).prop_map(|(requests, count)| PodDemand { requests, count });
    (id(), text(), id(), vec(any::<u8>(), 1..60), vec(demand, 0..3)).prop_map(
        |(kind, namespace, name, manifest, demand)| Intent {
            kind: kind.into(),
            namespace,
            name: name.into(),
            manifest: manifest.into(),
            demand,
        },
    )
}

fn command() -> impl Strategy<Value = Command> {
    let cause = proptest::sample::select(vec![
        StopCause::Deleted,
        StopCause::Evicted,
        StopCause::Retired,
        StopCause::Superseded,
    ]);
    let desired = prop_oneof![
        intent().prop_map(Desired::Prepare),
        intent().prop_map(Desired::Start),
        Just(Desired::Keep),
        cause.prop_map(Desired::Stop),
    ];
    (id(), epoch(), any::<u64>(), desired).prop_map(|(run, epoch, revision, desired)| Command {
        run: RunId::new(run),
        epoch,
        revision,
        desired,
    })
}

fn status() -> impl Strategy<Value = CopyStatus> {
    let terminal = (any::<bool>(), text(), text(), option::of(millis())).prop_map(
        |(succeeded, reason, message, completion_time)| Terminal {
            succeeded,
            reason,
            message,
            completion_time,
        },
    );
    (any::<[u32; 5]>(), text(), text(), option::of(millis()), option::of(terminal)).prop_map(
        |(
            [active, ready, terminating, succeeded, failed],
            completed_indexes,
            failed_indexes,
            start_time,
            terminal,
        )| {
            CopyStatus {
                active,
                ready,
                terminating,
                succeeded,
                failed,
                completed_indexes,
                failed_indexes,
                start_time,
                terminal,
            }
        },
    )
}

fn observation() -> impl Strategy<Value = Observation> {
    let state = prop_oneof![
        Just(CopyState::Accepted),
        (reason(), text()).prop_map(|(reason, detail)| CopyState::Refused(Refusal { reason, detail })),
        status().prop_map(CopyState::Live),
        status().prop_map(CopyState::Stopping),
        status().prop_map(CopyState::Stopped),
        Just(CopyState::Vanished),
    ];
    (id(), epoch(), any::<(u64, u64)>(), text(), text(), state).prop_map(
        |(run, epoch, (boot, version), namespace, name, state)| Observation {
            run: RunId::new(run),
            epoch,
            boot,
            version,
            namespace,
            name,
            state,
        },
    )
}

fn shape() -> impl Strategy<Value = Shape> {
    let effect = proptest::sample::select(vec![
        TaintEffect::NoSchedule,
        TaintEffect::PreferNoSchedule,
        TaintEffect::NoExecute,
    ]);
    let taint = (text(), text(), effect).prop_map(|(key, value, effect)| Taint { key, value, effect });
    let class = (btree_map(text(), text(), 0..3), vec(taint, 0..3))
        .prop_map(|(labels, taints)| Arc::new(NodeClass { labels, taints }));
    (class, resources(), any::<u32>()).prop_map(|(class, free, count)| Shape { class, free, count })
}

fn report() -> impl Strategy<Value = Report> {
    let bound = btree_map(placement(), resources(), 0..4);
    (any::<u64>(), vec(shape(), 0..5), vec(shape(), 0..5), bound, any::<u32>())
        .prop_map(|(version, free, empty, bound, nodes)| Report { version, free, empty, bound, nodes })
}

fn hello() -> impl Strategy<Value = Hello> {
    (any::<(u32, u64)>(), leadership(), versions(), text(), millis(), buckets(), buckets()).prop_map(
        |((protocol, boot), floor, versions, cluster_uid, clock, observations, commands)| Hello {
            protocol,
            floor: Floor::from(&floor),
            boot,
            versions,
            cluster_uid,
            clock,
            observations,
            commands,
        },
    )
}

fn spoke_frame() -> impl Strategy<Value = SpokeFrame> {
    prop_oneof![
        hello().prop_map(SpokeFrame::Hello),
        Just(SpokeFrame::Ready),
        (placement(), observation()).prop_map(|(p, o)| SpokeFrame::Observe(p, o)),
        placement().prop_map(SpokeFrame::Forget),
        Just(SpokeFrame::InventoryComplete),
        (placement(), any::<u64>()).prop_map(|(p, revision)| SpokeFrame::CommandReceived(p, revision)),
        report().prop_map(SpokeFrame::Report),
        (any::<u64>(), millis()).prop_map(|(number, clock)| SpokeFrame::Heartbeat(number, clock)),
        goodbye().prop_map(SpokeFrame::Goodbye),
    ]
}

fn hub_frame() -> impl Strategy<Value = HubFrame> {
    let welcome = (any::<(u32, u32)>(), leadership(), versions(), buckets(), buckets()).prop_map(
        |((protocol, heartbeat_ms), leadership, versions, observations, commands)| Welcome {
            protocol,
            leadership,
            versions,
            heartbeat_ms,
            observations,
            commands,
        },
    );
    prop_oneof![
        welcome.prop_map(HubFrame::Welcome),
        (placement(), command()).prop_map(|(p, c)| HubFrame::Command(p, c)),
        placement().prop_map(HubFrame::Withdraw),
        Just(HubFrame::CommandsComplete),
        (placement(), any::<(u64, u64)>())
            .prop_map(|(p, (boot, version))| HubFrame::ObservationReceived(p, boot, version)),
        (placement(), epoch(), any::<(u64, u64)>())
            .prop_map(|(p, epoch, (boot, version))| HubFrame::Acknowledge(p, epoch, boot, version)),
        any::<u64>().prop_map(HubFrame::HeartbeatAck),
        goodbye().prop_map(HubFrame::Goodbye),
    ]
}

/// Over the wire and back, in as many messages as it takes.
fn travel<F: Frame>(frame: F) -> F {
    let mut joiner = Joiner::default();
    let mut arrived = None;
    for message in cut(frame).unwrap() {
        assert!(arrived.is_none());
        let bytes = message.encode_to_vec();
        assert!(bytes.len() <= MAX_MESSAGE);
        arrived = joiner.take::<F>(F::Message::decode(bytes.as_slice()).unwrap()).unwrap();
    }
    arrived.unwrap()
}

proptest! {
    #[test]
    fn frames_of_spokes_survive(frame in spoke_frame()) {
        prop_assert_eq!(travel(frame.clone()), frame);
    }

    #[test]
    fn frames_of_the_hub_survive(frame in hub_frame()) {
        prop_assert_eq!(travel(frame.clone()), frame);
    }

    #[test]
    fn large_frames_travel_in_parts(mut command in command(), size in 200_000..2_000_000_usize, fill: u8) {
        let manifest: Arc<[u8]> = vec![fill; size].into();
        command.desired = Desired::Start(Intent {
            kind: "batch/v1/Job".into(),
            namespace: "team".into(),
            name: "train".into(),
            manifest,
            demand: Vec::new(),
        });
        let frame = HubFrame::Command(PlacementId::new("p1-1"), command);
        prop_assert_eq!(travel(frame.clone()), frame);
    }

    #[test]
    fn no_bytes_harm_the_reader(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(message) = wire::SpokeMessage::decode(bytes.as_slice()) {
            drop(SpokeFrame::decode(message));
        }
        if let Ok(message) = wire::HubMessage::decode(bytes.as_slice()) {
            drop(HubFrame::decode(message));
        }
    }

    /// One broken byte in a real frame: another frame or an error, never a panic.
    #[test]
    fn a_broken_byte_is_survived(frame in hub_frame(), at: proptest::sample::Index, byte: u8) {
        let mut bytes = frame.encode().encode_to_vec();
        if !bytes.is_empty() {
            let index = at.index(bytes.len());
            bytes[index] = byte;
        }
        if let Ok(message) = wire::HubMessage::decode(bytes.as_slice()) {
            drop(HubFrame::decode(message));
        }
    }
}

#[test]
fn what_is_missing_is_an_error_and_never_a_default() {
    let observe = |change: fn(&mut wire::PlacedObservation)| {
        let observation = Observation {
            run: RunId::new("r"),
            epoch: Epoch::new(1, 1),
            boot: 1,
            version: 1,
            namespace: "n".into(),
            name: "j".into(),
            state: CopyState::Vanished,
        };
        let message = SpokeFrame::Observe(PlacementId::new("p"), observation).encode();
        let Some(wire::spoke_message::Frame::Observe(mut wire)) = message.frame else { unreachable!() };
        change(&mut wire);
        let frame = Some(wire::spoke_message::Frame::Observe(wire));
        SpokeFrame::decode(wire::SpokeMessage { frame })
    };
    assert!(observe(|_| {}).is_ok());
    for change in [
        (|wire| wire.placement.clear()) as fn(&mut wire::PlacedObservation),
        |wire| wire.run.clear(),
        |wire| wire.epoch = None,
        |wire| wire.state = None,
    ] {
        assert!(matches!(observe(change), Err(WireError::Missing(_))));
    }
    assert!(matches!(SpokeFrame::decode(wire::SpokeMessage { frame: None }), Err(WireError::Missing(_))));
    assert!(matches!(HubFrame::decode(wire::HubMessage { frame: None }), Err(WireError::Missing(_))));
}

#[test]
fn unknown_reasons_stay_refusals_and_stay_readable() {
    let wire = wire::spoke_message::Frame::Goodbye(wire::Goodbye {
        reason: "FromTheFuture".to_owned(),
        detail: "why".to_owned(),
        retry_after_ms: 5,
        incarnation: 0,
    });
    let frame = SpokeFrame::decode(wire::SpokeMessage { frame: Some(wire) }).unwrap();
    let SpokeFrame::Goodbye(goodbye) = frame else { unreachable!() };
    assert_eq!(goodbye.reason, Reason::ProtocolViolation);
    assert_eq!(&*goodbye.detail, "FromTheFuture: why");
}

#[test]
fn a_shape_of_a_missing_class_is_refused() {
    let wire = wire::Report {
        free: vec![wire::Shape { class: 1, free: Some(wire::Resources::default()), count: 1 }],
        classes: vec![wire::NodeClass::default()],
        ..wire::Report::default()
    };
    assert_eq!(super::report::decode(wire), Err(WireError::NoSuchClass { index: 1, count: 1 }));
}

#[test]
fn too_many_buckets_are_refused() {
    let frame = wire::hub_message::Frame::Welcome(wire::Welcome {
        leadership: Some(wire::Leadership::default()),
        observations: vec![0; 5000],
        ..wire::Welcome::default()
    });
    assert!(matches!(
        HubFrame::decode(wire::HubMessage { frame: Some(frame) }),
        Err(WireError::TooLarge { .. })
    ));
}
