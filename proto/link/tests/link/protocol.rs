//! The protocol's two ends over the link, with a connection that breaks.

use fairlead_link::{HubIo, SessionIo, SpokeIo};
use fairlead_model::{Epoch, Floor, Incarnation, Leadership, Millis, Nonce, Now, PlacementId, RunId, Term};
use fairlead_session::{
    Command, CopyState, CopyStatus, Desired, HubConfig, HubInput, HubOutput, HubSession, Observation,
    SessionEvent, SpokeConfig, SpokeInput, SpokeOutput, SpokeSession, StopCause, Versions,
};

use crate::fixture::Hub;

const ENTRIES: u64 = 300;

fn now() -> Now {
    Now { wall: Millis(0), mono: Millis(0) }
}

fn key(i: u64) -> PlacementId {
    PlacementId::of(Epoch::new(1, i))
}

fn observation(i: u64, version: u64) -> Observation {
    Observation {
        run: RunId::new(format!("run-{i}")),
        epoch: Epoch::new(1, i),
        boot: 1,
        version,
        namespace: "team".into(),
        name: format!("job-{i}").into(),
        state: CopyState::Live(CopyStatus::default()),
    }
}

fn stop(i: u64) -> Command {
    let desired = Desired::Stop(StopCause::Deleted);
    Command { run: RunId::new(format!("run-{i}")), epoch: Epoch::new(1, i), revision: 1, desired }
}

/// Runs the hub's machine on a connection until its inventory is complete and `commands` were received.
async fn run_hub(mut session: HubSession, mut io: HubIo) -> HubSession {
    let mut events = Vec::new();
    let mut input = Some(HubInput::Connected);
    while let Some(next) = input {
        for output in session.handle(next, now()) {
            match output {
                HubOutput::Send(frame) => io.frames_out.send(frame).await.unwrap_or_default(),
                HubOutput::Event(event) => events.push(event),
                HubOutput::Close => io.cancel.cancel(),
            }
        }
        input = io.frames_in.recv().await.map(HubInput::Frame);
    }
    session.handle(HubInput::Disconnected, now());
    assert!(
        events.contains(&SessionEvent::InventoryComplete),
        "the session was cut too early to show anything"
    );
    session
}

/// Runs the spoke's machine until it is told `enough`, then breaks the connection.
async fn run_spoke(
    mut session: SpokeSession,
    mut io: SpokeIo,
    enough: impl Fn(&SpokeSession, u64) -> bool,
) -> (SpokeSession, u64) {
    let mut commands = 0;
    let mut inputs = vec![SpokeInput::Connected];
    loop {
        while let Some(input) = inputs.pop() {
            for output in session.handle(input, now()) {
                match output {
                    SpokeOutput::Send(frame) => io.frames_out.send(frame).await.unwrap(),
                    SpokeOutput::StoreFloor(floor) => inputs.push(SpokeInput::FloorStored(floor)),
                    SpokeOutput::Command(..) => commands += 1,
                    _ => {}
                }
            }
        }
        if enough(&session, commands) {
            break;
        }
        inputs.push(SpokeInput::Frame(io.frames_in.recv().await.expect("the hub stays")));
    }
    let SessionIo { frames_in, frames_out, cancel } = io;
    SessionIo { frames_in, frames_out, cancel }.close().await;
    session.handle(SpokeInput::Disconnected, now());
    (session, commands)
}

#[tokio::test]
async fn both_ends_converge_over_broken_connections() {
    let mut hub = Hub::serving().await;
    let leadership = Leadership { incarnation: Incarnation(1), term: Term(1), nonce: Nonce("n".into()) };
    let mut hub_end = HubSession::new(HubConfig::new(leadership, Versions::default()));
    let mut spoke_end = SpokeSession::new(SpokeConfig::new(Floor::default(), 1));
    for i in 1..=ENTRIES {
        hub_end.handle(HubInput::Command(key(i), stop(i)), now());
        spoke_end.handle(SpokeInput::Observe(key(i), observation(i, 1)), now());
    }
    for version in 2..5 {
        let (gateway, spoke) = hub.session().await;
        let hub_side = tokio::spawn(run_hub(hub_end, gateway));
        let all = |session: &SpokeSession, commands| {
            session.commands().count() == usize::try_from(ENTRIES).unwrap() && commands >= ENTRIES
        };
        let (mut ended, _) = run_spoke(spoke_end, spoke, all).await;
        hub_end = hub_side.await.unwrap();
        assert!(hub_end.commands().eq(ended.commands()));
        assert!(hub_end.observations().eq(ended.observations()));
        for i in (1..=ENTRIES).step_by(7) {
            ended.handle(SpokeInput::Observe(key(i), observation(i, version)), now());
        }
        spoke_end = ended;
    }
}
