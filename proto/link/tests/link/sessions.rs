//! The lane of spokes with certificates.

use std::sync::Arc;

use fairlead_link::client::DialError;
use fairlead_link::{HubIo, MAX_FRAME, SpokeIo};
use fairlead_model::{Epoch, Millis, PlacementId, Reason, RunId};
use fairlead_pki::SpokeIdentity;
use fairlead_session::{Command, Desired, HubFrame, Intent, SpokeFrame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::fixture::{Hub, NOW, UID, domain};

fn large(bytes: usize) -> HubFrame {
    let manifest: Arc<[u8]> = (0..=255_u8).cycle().take(bytes).collect::<Vec<_>>().into();
    let intent = Intent {
        kind: "batch/v1/Job".into(),
        namespace: "team".into(),
        name: "train".into(),
        manifest,
        demand: Vec::new(),
    };
    let desired = Desired::Start(intent);
    let command = Command { run: RunId::new("r"), epoch: Epoch::new(1, 1), revision: 1, desired };
    HubFrame::Command(PlacementId::new("p1-1"), command)
}

/// Both ends agree that it is over.
async fn over(mut hub: HubIo, mut spoke: SpokeIo) {
    while hub.frames_in.recv().await.is_some() {}
    while spoke.frames_in.recv().await.is_some() {}
    hub.cancel.cancelled().await;
    spoke.cancel.cancelled().await;
}

#[tokio::test]
async fn frames_go_both_ways_in_order() {
    let mut hub = Hub::serving().await;
    let mut spoke = hub.spoke().dial().await.unwrap();
    let (peer, mut gateway) = hub.accepted().await;
    assert_eq!(peer.identity(), &SpokeIdentity::issue(domain(), UID.parse().unwrap()));
    for number in 0..500 {
        spoke.frames_out.send(SpokeFrame::Heartbeat(number, Millis(7))).await.unwrap();
        gateway.frames_out.send(HubFrame::HeartbeatAck(number)).await.unwrap();
    }
    for number in 0..500 {
        assert_eq!(gateway.frames_in.recv().await.unwrap(), SpokeFrame::Heartbeat(number, Millis(7)));
        assert_eq!(spoke.frames_in.recv().await.unwrap(), HubFrame::HeartbeatAck(number));
    }
}

#[tokio::test]
async fn closing_delivers_what_was_sent_before() {
    let mut hub = Hub::serving().await;
    let (gateway, mut spoke) = hub.session().await;
    for number in 0..500 {
        gateway.frames_out.send(HubFrame::HeartbeatAck(number)).await.unwrap();
    }
    let closing = tokio::spawn(gateway.close());
    for number in 0..500 {
        assert_eq!(spoke.frames_in.recv().await.unwrap(), HubFrame::HeartbeatAck(number));
    }
    assert_eq!(spoke.frames_in.recv().await, None);
    closing.await.unwrap();

    let (mut gateway, spoke) = hub.session().await;
    for number in 0..500 {
        spoke.frames_out.send(SpokeFrame::Heartbeat(number, Millis(0))).await.unwrap();
    }
    let closing = tokio::spawn(spoke.close());
    for number in 0..500 {
        assert_eq!(gateway.frames_in.recv().await.unwrap(), SpokeFrame::Heartbeat(number, Millis(0)));
    }
    assert_eq!(gateway.frames_in.recv().await, None);
    closing.await.unwrap();
}

#[tokio::test]
async fn large_frames_arrive_whole_and_too_large_ones_end_the_session() {
    let mut hub = Hub::serving().await;
    let (gateway, mut spoke) = hub.session().await;
    gateway.frames_out.send(large(1_500_000)).await.unwrap();
    gateway.frames_out.send(HubFrame::HeartbeatAck(1)).await.unwrap();
    assert_eq!(spoke.frames_in.recv().await.unwrap(), large(1_500_000));
    assert_eq!(spoke.frames_in.recv().await.unwrap(), HubFrame::HeartbeatAck(1));
    gateway.frames_out.send(large(MAX_FRAME + 1)).await.unwrap();
    over(gateway, spoke).await;
}

#[tokio::test]
async fn either_side_can_cancel() {
    let mut hub = Hub::serving().await;
    let (gateway, spoke) = hub.session().await;
    gateway.cancel.cancel();
    over(gateway, spoke).await;
    let (gateway, spoke) = hub.session().await;
    spoke.cancel.cancel();
    over(gateway, spoke).await;
    let (gateway, mut spoke) = hub.session().await;
    drop(gateway);
    assert_eq!(spoke.frames_in.recv().await, None);
}

async fn last_words(mut spoke: SpokeIo) -> Reason {
    let Some(HubFrame::Goodbye(goodbye)) = spoke.frames_in.recv().await else { panic!("no goodbye") };
    assert_eq!(spoke.frames_in.recv().await, None);
    goodbye.reason
}

#[tokio::test]
async fn a_revoked_spoke_is_cut_and_told_and_stays_out() {
    let mut hub = Hub::serving().await;
    let dialer = hub.spoke();
    let spoke = dialer.dial().await.unwrap();
    let (peer, mut gateway) = hub.accepted().await;
    let (mut untouched, _other) = {
        hub.deny.deny_key(peer.key());
        hub.session().await
    };
    assert_eq!(last_words(spoke).await, Reason::IdentityRevoked);
    assert_eq!(gateway.frames_in.recv().await, None);
    let error = dialer.dial().await.unwrap_err().to_string();
    assert!(error.contains("CertificateRevoked") || error.contains("connection"), "{error}");
    assert!(
        untouched.frames_in.try_recv().is_err_and(|e| e == tokio::sync::mpsc::error::TryRecvError::Empty)
    );
}

#[tokio::test]
async fn a_connection_ends_with_its_certificate() {
    let mut hub = Hub::serving().await;
    let (mut gateway, spoke) = hub.session().await;
    hub.clock.set(NOW + 86_401);
    assert_eq!(last_words(spoke).await, Reason::CertificateExpired);
    assert_eq!(gateway.frames_in.recv().await, None);
    assert!(hub.spoke().dial().await.is_err());
}

/// A certificate of another hub's CA, although the stranger trusts this hub.
#[tokio::test]
async fn a_stranger_is_turned_away() {
    let (mut hub, other) = (Hub::serving().await, Hub::serving().await);
    let error = hub.dialer(other.certificate()).dial().await.unwrap_err();
    assert!(matches!(error, DialError::Connect { .. }), "{error}");
    let (_gateway, _spoke) = hub.session().await;
}

/// Garbage, silence and half a handshake cost nobody else anything.
#[tokio::test]
async fn bad_company_does_not_disturb() {
    let mut hub = Hub::serving().await;
    let mut silent = TcpStream::connect(&hub.address).await.unwrap();
    let mut garbage = TcpStream::connect(&hub.address).await.unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\nhost: hub\r\n\r\n").await.unwrap();
    let mut half = TcpStream::connect(&hub.address).await.unwrap();
    half.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]).await.unwrap();
    let (gateway, mut spoke) = hub.session().await;
    gateway.frames_out.send(HubFrame::HeartbeatAck(1)).await.unwrap();
    assert_eq!(spoke.frames_in.recv().await.unwrap(), HubFrame::HeartbeatAck(1));
    let mut answer = Vec::new();
    garbage.read_to_end(&mut answer).await.ok();
    assert!(answer.len() < 64, "an alert at most: {answer:?}");
    // Both are given up by the server's own patience.
    silent.read_to_end(&mut Vec::new()).await.ok();
    half.read_to_end(&mut Vec::new()).await.ok();
    gateway.frames_out.send(HubFrame::HeartbeatAck(2)).await.unwrap();
    assert_eq!(spoke.frames_in.recv().await.unwrap(), HubFrame::HeartbeatAck(2));
}

/// Passes bytes on in both directions until told to hold them back, as a network that drops packets does.
async fn through_a_network(hub: &str, hold: CancellationToken) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, hub) = (listener.local_addr().unwrap().to_string(), hub.to_owned());
    tokio::spawn(async move {
        let (mut from, _) = listener.accept().await.unwrap();
        let mut to = TcpStream::connect(hub).await.unwrap();
        let relaying = tokio::io::copy_bidirectional(&mut from, &mut to);
        hold.run_until_cancelled(relaying).await;
        // Both sockets stay open, and nothing passes.
        std::future::pending::<()>().await;
    });
    address
}

/// Nobody says anything and nobody is told: only the pings can notice. Takes as long as they do, 15 s.
#[tokio::test]
async fn a_network_that_went_silent_is_noticed_by_both_ends() {
    let mut hub = Hub::serving().await;
    let hold = CancellationToken::new();
    let dialer = hub.dialer_at(&through_a_network(&hub.address, hold.clone()).await, hub.certificate());
    let mut spoke = dialer.dial().await.unwrap();
    let (_, gateway) = hub.accepted().await;
    gateway.frames_out.send(HubFrame::HeartbeatAck(1)).await.unwrap();
    assert_eq!(spoke.frames_in.recv().await, Some(HubFrame::HeartbeatAck(1)));
    hold.cancel();
    over(gateway, spoke).await;
}

#[tokio::test]
async fn stopping_ends_every_connection_and_then_returns() {
    let (mut hub, listener) = Hub::new().await;
    let serving = hub.serve(listener);
    let (first, second) = (hub.session().await, hub.session().await);
    hub.stop.cancel();
    over(first.0, first.1).await;
    over(second.0, second.1).await;
    serving.await.unwrap();
    assert!(TcpStream::connect(&hub.address).await.is_err());
}
