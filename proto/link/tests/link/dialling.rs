//! Finding the hub again.

use std::sync::Arc;

use fairlead_link::client::{DialError, Dialer, dial_until_up};
use fairlead_session::HubFrame;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::fixture::Hub;

#[tokio::test]
async fn a_hub_that_comes_up_late_is_found() {
    let (mut hub, listener) = Hub::new().await;
    let address = listener.local_addr().unwrap();
    drop(listener);
    let dialer = hub.spoke();
    assert!(matches!(dialer.dial().await, Err(DialError::Connect { .. })));
    let dialling =
        tokio::spawn(async move { dial_until_up(&dialer, || 1 << 60, CancellationToken::new()).await });
    tokio::task::yield_now().await;
    drop(hub.serve(TcpListener::bind(address).await.unwrap()));
    let mut spoke = dialling.await.unwrap().unwrap();
    let (_, gateway) = hub.accepted().await;
    gateway.frames_out.send(HubFrame::HeartbeatAck(1)).await.unwrap();
    assert_eq!(spoke.frames_in.recv().await, Some(HubFrame::HeartbeatAck(1)));
}

/// The kernel takes the connection, nobody answers: attempts hang, and one of them gets through once somebody
/// does.
#[tokio::test]
async fn a_hub_that_hangs_is_found_when_it_wakes() {
    let (mut hub, listener) = Hub::new().await;
    let dialer = hub.spoke();
    let dialling = tokio::spawn(async move { dial_until_up(&dialer, || 0, CancellationToken::new()).await });
    let (hanging, _) = listener.accept().await.unwrap();
    drop(hub.serve(listener));
    let spoke = dialling.await.unwrap().unwrap();
    hub.accepted().await;
    drop((hanging, spoke));
}

#[tokio::test]
async fn dialling_can_be_cancelled() {
    let (hub, listener) = Hub::new().await;
    drop(listener);
    let (dialer, cancel) = (hub.spoke(), CancellationToken::new());
    let dialling = tokio::spawn({
        let cancel = cancel.clone();
        async move { dial_until_up(&dialer, || u64::MAX, cancel).await.is_none() }
    });
    cancel.cancel();
    assert!(dialling.await.unwrap());
}

#[tokio::test]
async fn addresses_are_checked() {
    let (hub, _listener) = Hub::new().await;
    let tls = fairlead_pki::tls::enrolment_client(hub.ca.pin(), hub.time()).unwrap();
    for bad in ["", "hub", "hub:", "hub:99999", "hub:port", ":443", "a b:1"] {
        assert!(matches!(Dialer::new(bad, Arc::clone(&tls)), Err(DialError::Address(_))), "{bad}");
    }
    for good in ["hub.example.com:443", "10.0.0.1:8443", "[::1]:8443"] {
        assert!(Dialer::new(good, Arc::clone(&tls)).is_ok(), "{good}");
    }
}
