//! What a Secret says about a token, and what is written on redemption. The race itself is tested on a real API
//! server.

use super::*;

fn token() -> JoinToken {
    JoinToken::from_entropy(&[3; JoinToken::ENTROPY])
}

fn stored(record: &JoinTokenRecord, owner: Option<&str>) -> Object {
    let owners = owner.map(|uid| json!([{"kind": "Cluster", "name": "a", "uid": uid}])).unwrap_or_default();
    let data = STANDARD.encode(serde_json::to_string(record).unwrap());
    let json = json!({
        "metadata": {"name": "x", "namespace": "ns", "uid": "u", "resourceVersion": "7", "ownerReferences": owners},
        "data": {"record": data},
    });
    Object::from_json(json).unwrap()
}

fn fresh() -> JoinTokenRecord {
    let made = UnixTime::since_unix_epoch(Duration::from_hours(500_000));
    JoinTokenRecord::new(&token(), "a", made, Duration::from_mins(15))
}

#[test]
fn a_record_is_read_as_it_was_written_and_the_write_is_conditional() {
    let secret = stored(&fresh(), None);
    let text = |record: &JoinTokenRecord| serde_json::to_string(record).unwrap();
    assert_eq!(record(&secret).as_ref().map(text), Some(text(&fresh())));
    let patch = patch(secret.version, &fresh()).unwrap();
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    let mut written = secret;
    written.json = Arc::new(json!({"data": patch["data"]}));
    assert_eq!(record(&written).as_ref().map(text), Some(text(&fresh())));
}

#[test]
fn a_token_of_an_earlier_cluster_of_the_same_name_is_not_this_ones() {
    let uid = Uid::new("new");
    assert!(is_of(&stored(&fresh(), Some("new")), &uid));
    assert!(!is_of(&stored(&fresh(), Some("old")), &uid));
    assert!(is_of(&stored(&fresh(), None), &uid));
}

#[test]
fn refusals_of_tokens_keep_their_reason() {
    let refused = by_token(&JoinRefusal::Unknown);
    assert_eq!(refused.reason, Reason::TokenUnknown);
    assert!(refused.to_string().starts_with("TokenUnknown: "), "{refused}");
}
