//! One spoke's task, with channels where the link would be.

use std::collections::BTreeMap;

use fairlead_controller::ports::SpokeEvent;
use fairlead_link::HubIo;
use fairlead_model::{Epoch, Floor, Incarnation, Leadership, Millis, Nonce, RunId, Term};
use fairlead_session::{BucketHashes, Desired, Hello, HubFrame, PROTOCOL, SpokeFrame, Versions};
use tokio::task::JoinHandle;

use super::*;

struct Hub {
    table: Arc<SpokeTable>,
    inbox: mpsc::Receiver<Input>,
    cancel: CancellationToken,
    tender: JoinHandle<Result<(), TaskError>>,
}

/// The far end of a connection.
struct Far {
    to_hub: mpsc::Sender<SpokeFrame>,
    from_hub: mpsc::Receiver<HubFrame>,
    cancel: CancellationToken,
}

fn leadership() -> Leadership {
    Leadership { incarnation: Incarnation(1), term: Term(7), nonce: Nonce("n".into()) }
}

fn hub() -> Hub {
    let (sender, inbox) = mpsc::channel(64);
    let (table, tender) = SpokeTable::new(HubConfig::new(leadership(), Versions::default()), sender);
    let cancel = CancellationToken::new();
    let tender = tokio::spawn(tender.run(cancel.clone()));
    Hub { table, inbox, cancel, tender }
}

fn spoke() -> SpokeId {
    SpokeId::new("s")
}

fn hello() -> SpokeFrame {
    SpokeFrame::Hello(Hello {
        protocol: PROTOCOL,
        floor: Floor::default(),
        boot: 1,
        versions: Versions::default(),
        cluster_uid: "u".into(),
        clock: Millis(0),
        observations: BucketHashes::default(),
        commands: BucketHashes::default(),
    })
}

impl Hub {
    /// Connects with room for so many frames on the way to the spoke.
    fn connect(&self, room: usize) -> Far {
        let (to_hub, frames_in) = mpsc::channel(8);
        let (frames_out, from_hub) = mpsc::channel(room);
        let cancel = CancellationToken::new();
        let io = HubIo { frames_in, frames_out, cancel: cancel.clone() };
        self.table.arrive(&spoke(), Arrival { first: hello(), io, certificate_expires: 99 });
        Far { to_hub, from_hub, cancel }
    }

    async fn event(&mut self) -> SpokeEvent {
        match self.inbox.recv().await.unwrap() {
            Input::Spoke(_, event) => event,
            other => panic!("{other:?}"),
        }
    }

    async fn stop(self) {
        self.cancel.cancel();
        self.tender.await.unwrap().unwrap();
    }
}

fn keep(revision: u64) -> Command {
    Command { run: RunId::new("r"), epoch: Epoch::new(7, 1), revision, desired: Desired::Keep }
}

async fn establish(hub: &mut Hub, far: &mut Far) {
    assert!(matches!(far.from_hub.recv().await, Some(HubFrame::Welcome(_))));
    far.to_hub.send(SpokeFrame::Ready).await.unwrap();
    assert!(matches!(hub.event().await, SpokeEvent::Connected { certificate_expires: 99, .. }));
}

/// The commands that arrive before the hub says that all have.
async fn commands(far: &mut Far) -> BTreeMap<PlacementId, u64> {
    let mut seen = BTreeMap::new();
    loop {
        match far.from_hub.recv().await.unwrap() {
            HubFrame::Command(placement, command) => {
                seen.insert(placement.clone(), command.revision);
                far.to_hub.send(SpokeFrame::CommandReceived(placement, command.revision)).await.unwrap();
            }
            HubFrame::CommandsComplete => return seen,
            _ => {}
        }
    }
}

#[tokio::test]
async fn what_the_brain_wants_of_an_absent_spoke_is_sent_when_it_comes() {
    let mut hub = hub();
    hub.table.command(&spoke(), PlacementId::new("p1"), keep(1));
    hub.table.command(&spoke(), PlacementId::new("p1"), keep(2));
    hub.table.command(&spoke(), PlacementId::new("p2"), keep(1));
    hub.table.withdraw(&spoke(), PlacementId::new("p2"));
    let mut far = hub.connect(64);
    establish(&mut hub, &mut far).await;
    assert_eq!(commands(&mut far).await, BTreeMap::from([(PlacementId::new("p1"), 2)]));
    hub.stop().await;
}

#[tokio::test]
async fn a_new_connection_replaces_the_old_one_at_its_hello() {
    let mut hub = hub();
    let mut old = hub.connect(64);
    establish(&mut hub, &mut old).await;
    let mut new = hub.connect(64);
    assert!(matches!(hub.event().await, SpokeEvent::Disconnected));
    establish(&mut hub, &mut new).await;
    while old.from_hub.recv().await.is_some() {}
    drop(old.to_hub);
    old.cancel.cancelled().await;
    assert!(!new.cancel.is_cancelled());
    hub.stop().await;
}

/// A spoke whose process is stopped takes no frames: its task must still notice its silence and obey the brain.
#[tokio::test]
async fn a_spoke_that_takes_nothing_does_not_block_its_task() {
    let mut hub = hub();
    let mut stuck = hub.connect(1);
    establish(&mut hub, &mut stuck).await;
    for number in 0..100 {
        hub.table.command(&spoke(), PlacementId::new(format!("p{number}")), keep(1));
    }
    hub.table.cut(&spoke());
    stuck.cancel.cancelled().await;
    assert!(matches!(hub.event().await, SpokeEvent::Disconnected));
    let mut again = hub.connect(1);
    establish(&mut hub, &mut again).await;
    assert_eq!(commands(&mut again).await.len(), 100);
    hub.stop().await;
}

#[tokio::test]
async fn the_end_of_a_connection_is_the_end_of_the_session() {
    let mut hub = hub();
    let mut far = hub.connect(64);
    establish(&mut hub, &mut far).await;
    drop(far.to_hub);
    assert!(matches!(hub.event().await, SpokeEvent::Disconnected));
    hub.stop().await;
}
