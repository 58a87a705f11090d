//! The lane without client certificates.

use fairlead_link::EnrolRequest;
use fairlead_link::client::{Dialer, EnrolError, enrol};
use fairlead_model::Reason;
use fairlead_pki::tls::enrolment_client;

use crate::fixture::{Hub, NOW, UID, at};

fn request(token: &str) -> EnrolRequest {
    EnrolRequest { cluster: "aws-use1".to_owned(), token: token.to_owned(), csr_der: vec![1, 2, 3] }
}

#[tokio::test]
async fn a_good_token_gives_a_certificate() {
    let hub = Hub::serving().await;
    let enrolled = enrol(&hub.address, hub.ca.pin(), hub.time(), request("good")).await.unwrap();
    assert_eq!(enrolled.certificate_pem, "a certificate");
    assert_eq!(enrolled.ca_pem, hub.ca.certificate_pem());
    assert_eq!(enrolled.cluster_uid, UID);
    assert_eq!(enrolled.expires, at(NOW + 86_400));
    assert_eq!(*hub.desk.asked.lock().await, [request("good")]);
}

#[tokio::test]
async fn a_refusal_arrives_with_its_reason() {
    let hub = Hub::serving().await;
    let error = enrol(&hub.address, hub.ca.pin(), hub.time(), request("bad")).await.unwrap_err();
    let EnrolError::Refused(refusal) = error else { panic!("{error}") };
    assert_eq!(refusal.reason, Reason::TokenUsed);
    assert_eq!(refusal.detail, "used with another key");
}

/// The token goes to nobody but the hub whose CA is pinned.
#[tokio::test]
async fn a_hub_with_another_ca_gets_no_token() {
    let (hub, other) = (Hub::serving().await, Hub::serving().await);
    let error = enrol(&hub.address, other.ca.pin(), hub.time(), request("good")).await.unwrap_err();
    assert!(matches!(error, EnrolError::Unreachable(_)), "{error}");
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    assert!(hub.desk.asked.lock().await.is_empty());
}

#[tokio::test]
async fn an_oversized_request_is_refused_unread() {
    let hub = Hub::serving().await;
    let large = EnrolRequest { csr_der: vec![0; 20 << 10], ..request("good") };
    let error = enrol(&hub.address, hub.ca.pin(), hub.time(), large).await.unwrap_err();
    assert!(matches!(error, EnrolError::Unreachable(_)), "{error}");
    assert!(hub.desk.asked.lock().await.is_empty());
}

#[tokio::test]
async fn there_are_no_sessions_on_this_lane() {
    let hub = Hub::serving().await;
    let dialer = Dialer::new(&hub.address, enrolment_client(hub.ca.pin(), hub.time()).unwrap()).unwrap();
    let text = dialer.dial().await.unwrap_err().to_string();
    assert!(text.contains("not implemented"), "{text}");
}

#[test]
fn the_token_is_not_printed() {
    let text = format!("{:?}", request("fj1.secret"));
    assert!(text.contains("aws-use1") && !text.contains("secret"), "{text}");
}
