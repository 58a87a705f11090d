//! What the ConfigMap says, and whom a request is made for.

use axum::http::{HeaderName, HeaderValue};
use serde_json::json;

use super::testing::{Authority, proxy, proxy_certificate};
use super::*;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap());
    }
    headers
}

#[test]
fn the_user_groups_and_extra_are_the_headers_and_the_name_must_be_allowed() {
    let front = FrontProxy::default();
    let asked = headers(&[
        ("X-Remote-User", "ada"),
        ("X-Remote-Group", "team"),
        ("X-Remote-Group", "system:authenticated"),
        ("X-Remote-Extra-Scopes", "read"),
        ("X-Remote-Extra-", "nothing"),
        ("X-Other", "ignored"),
    ]);
    let certificate = proxy_certificate("front");
    assert_eq!(front.caller(Some(&certificate), &asked), None, "no proxy is known yet");
    front.set(proxy(&["front"]));
    let caller = front.caller(Some(&certificate), &asked).unwrap();
    assert_eq!(caller.user, "ada");
    assert_eq!(caller.groups, ["team", "system:authenticated"]);
    assert_eq!(caller.extra, [("scopes".to_owned(), vec!["read".to_owned()])].into());
    assert_eq!(front.caller(None, &asked), None, "no certificate");
    assert_eq!(front.caller(Some(&proxy_certificate("other")), &asked), None, "another name");
    assert_eq!(front.caller(Some(&certificate), &headers(&[("X-Remote-Group", "team")])), None, "no user");
    front.set(proxy(&[]));
    assert!(front.caller(Some(&proxy_certificate("other")), &asked).is_some(), "every name is allowed");
}

#[test]
fn a_config_map_without_a_front_proxy_is_not_usable() {
    for data in [
        json!({}),
        json!({"requestheader-client-ca-file": "nonsense"}),
        json!({"requestheader-client-ca-file": ""}),
    ] {
        assert!(Proxy::of(&data).is_err(), "{data}");
    }
    let mut data = Authority::new().data(&[]);
    data["requestheader-allowed-names"] = json!("front");
    assert!(Proxy::of(&data).is_err(), "a list that is none");
}

#[test]
fn certificates_of_another_authority_are_refused() {
    let (ours, other) = (Authority::new(), Authority::new());
    let front = FrontProxy::default();
    let ((genuine, _), (foreign, _)) = (ours.client("front"), other.client("front"));
    let verify = |leaf| front.verify_client_cert(leaf, &[], UnixTime::now());
    assert!(verify(&genuine).is_err(), "no proxy is known yet");
    front.set(Proxy::of(&ours.data(&["front"])).unwrap());
    assert!(verify(&genuine).is_ok());
    assert!(verify(&foreign).is_err());
    front.set(Proxy::of(&other.data(&["front"])).unwrap());
    assert!(verify(&genuine).is_err(), "the authority was exchanged");
}
