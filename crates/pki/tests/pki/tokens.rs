//! The table of join tokens: expired, foreign, mistyped, other key, other name, same key again.

use std::sync::Mutex;
use std::thread;

use fairlead_model::Reason;
use fairlead_pki::{
    JOIN_TOKEN_LIFE, JoinRefusal, JoinToken, JoinTokenRecord, KeyFingerprint, Redeem, Redemption, redeem,
};
use proptest::prelude::*;

use crate::fixture::{NOW, at};

const LAST: u64 = NOW + 900;

fn token(seed: u8) -> JoinToken {
    JoinToken::from_entropy(&std::array::from_fn(|i| {
        seed.wrapping_mul(31).wrapping_add(u8::try_from(i).unwrap() * 7)
    }))
}

fn key(seed: &[u8]) -> KeyFingerprint {
    KeyFingerprint::of_spki(seed)
}

fn fresh() -> JoinTokenRecord {
    JoinTokenRecord::new(&token(1), "aws-use1", at(NOW), JOIN_TOKEN_LIFE)
}

fn used() -> JoinTokenRecord {
    JoinTokenRecord { redeemed: Some(redemption(b"a")), ..fresh() }
}

fn redemption(by: &[u8]) -> Redemption {
    Redemption { key: key(by), certificate: "PEM".to_owned(), certificate_expires_at: NOW + 86_400 }
}

#[test]
fn the_table() {
    let a = key(b"a");
    let ask = |record: &JoinTokenRecord, token: &JoinToken, key, name, now| {
        redeem(Some(record), token, key, name, at(now))
    };
    assert_eq!(ask(&fresh(), &token(1), a, "aws-use1", NOW), Ok(Redeem::First));
    assert_eq!(ask(&fresh(), &token(1), a, "aws-use1", LAST), Ok(Redeem::First));
    let expired = JoinRefusal::Expired { seconds_ago: 1, cluster: "aws-use1".to_owned() };
    assert_eq!(ask(&fresh(), &token(1), a, "aws-use1", LAST + 1), Err(expired));
    assert_eq!(ask(&fresh(), &token(2), a, "aws-use1", NOW), Err(JoinRefusal::Unknown));
    assert_eq!(redeem(None, &token(1), a, "aws-use1", at(NOW)), Err(JoinRefusal::Unknown));
    let wrong = JoinRefusal::WrongName { bound: "aws-use1".to_owned(), claimed: "aws-use2".to_owned() };
    assert_eq!(ask(&fresh(), &token(1), a, "aws-use2", NOW), Err(wrong));

    let again = Ok(Redeem::Again(redemption(b"a")));
    assert_eq!(ask(&used(), &token(1), a, "aws-use1", NOW + 1), again);
    assert_eq!(ask(&used(), &token(1), a, "aws-use1", LAST + 1), again, "a lost reply burns nothing");
    assert!(matches!(ask(&used(), &token(1), a, "aws-use1", NOW + 86_401), Err(JoinRefusal::Expired { .. })));
    let taken = Err(JoinRefusal::UsedWithAnotherKey { key: a, cluster: "aws-use1".to_owned() });
    assert_eq!(ask(&used(), &token(1), key(b"b"), "aws-use1", NOW), taken);
    assert_eq!(ask(&used(), &token(1), key(b"b"), "aws-use1", LAST + 1), taken);
}

/// Without the secret there is one answer, whatever the state of the record.
#[test]
fn a_guesser_learns_nothing() {
    for record in [fresh(), used()] {
        for (name, now) in [("aws-use1", NOW), ("other", NOW), ("aws-use1", LAST + 1)] {
            assert_eq!(redeem(Some(&record), &token(9), key(b"a"), name, at(now)), Err(JoinRefusal::Unknown));
        }
    }
}

#[test]
fn each_refusal_has_its_reason_and_says_what_to_do() {
    let refusals = [
        (
            JoinRefusal::Expired { seconds_ago: 5, cluster: "x".to_owned() },
            Reason::TokenExpired,
            "expired 5 s ago",
        ),
        (JoinRefusal::Unknown, Reason::TokenUnknown, "did not issue"),
        ("nonsense".parse::<JoinToken>().unwrap_err(), Reason::TokenMistyped, "mistyped"),
        (
            JoinRefusal::UsedWithAnotherKey { key: key(b"a"), cluster: "x".to_owned() },
            Reason::TokenUsed,
            "another key",
        ),
        (
            JoinRefusal::WrongName { bound: "x".to_owned(), claimed: "y".to_owned() },
            Reason::TokenWrongName,
            "\"x\"",
        ),
    ];
    for (refusal, reason, words) in refusals {
        assert_eq!(refusal.reason(), reason);
        assert!(refusal.to_string().contains(words), "{refusal}");
    }
}

#[test]
fn the_form_is_stable() {
    let token = JoinToken::from_entropy(&[0; JoinToken::ENTROPY]);
    let text = token.expose();
    assert!(text.starts_with("fj1.00000000.00000000000000000000000000000000"), "{text}");
    assert_eq!(text.len(), 49);
    assert_eq!(token.id(), "00000000");
    assert_eq!(text.parse::<JoinToken>().unwrap(), token);
    assert_eq!(format!(" {text}\n").parse::<JoinToken>().unwrap(), token, "blanks around it are a file's");
}

/// Every single wrong, missing, doubled or swapped character is recognised as a typing error.
#[test]
fn typing_errors_are_told_from_foreign_tokens() {
    let token = token(3);
    let text = token.expose();
    for at in 0..text.len() {
        for c in "0123456789abcdefghjkmnpqrstvwxyzilouXA.- /".chars() {
            for typo in [
                format!("{}{c}{}", &text[..at], &text[at + 1..]),
                format!("{}{c}{}", &text[..at], &text[at..]),
                format!("{}{}", &text[..at], &text[at + 1..]),
            ] {
                if typo.trim() != text {
                    assert!(matches!(typo.parse::<JoinToken>(), Err(JoinRefusal::Mistyped { .. })), "{typo}");
                }
            }
        }
    }
    for at in 1..text.len() {
        let mut bytes = text.as_bytes().to_vec();
        bytes.swap(at - 1, at);
        let swapped = String::from_utf8(bytes).unwrap();
        assert!(swapped == text || swapped.parse::<JoinToken>().is_err(), "{swapped}");
    }
    assert!(text[..20].parse::<JoinToken>().is_err());
    assert!("".parse::<JoinToken>().is_err());
}

#[test]
fn the_token_is_neither_stored_nor_printed() {
    let (token, record) = (token(4), JoinTokenRecord::new(&token(4), "a", at(NOW), JOIN_TOKEN_LIFE));
    let secret = &token.expose()[13..];
    let stored = serde_json::to_string(&record).unwrap();
    for text in [format!("{token:?}"), format!("{record:?}"), stored.clone()] {
        assert!(!text.contains(secret) && !text.contains(&secret[..10]), "{text}");
    }
    let read: JoinTokenRecord = serde_json::from_str(&stored).unwrap();
    assert_eq!(redeem(Some(&read), &token, key(b"a"), "a", at(NOW)), Ok(Redeem::First));
    assert!(stored.contains("expiresAt"), "{stored}");
}

/// What the gateway does with [`redeem`]: read, decide, write by compare-and-set. A thousand agents with their
/// own keys race (threats T3, T4): one wins, the others are told, and the winner's repetitions get the same.
#[test]
fn a_thousand_redemptions_have_one_winner() {
    let store = Mutex::new((0_u64, fresh()));
    let attempt = |who: u32| -> Result<Redemption, JoinRefusal> {
        let me = key(&who.to_be_bytes());
        loop {
            let (version, record) = store.lock().unwrap().clone();
            thread::yield_now();
            match redeem(Some(&record), &token(1), me, "aws-use1", at(NOW))? {
                Redeem::Again(before) => return Ok(before),
                Redeem::First => {
                    let mine = Redemption {
                        key: me,
                        certificate: format!("of {who}"),
                        certificate_expires_at: NOW + 9,
                    };
                    let mut stored = store.lock().unwrap();
                    if stored.0 == version {
                        *stored = (version + 1, JoinTokenRecord { redeemed: Some(mine.clone()), ..record });
                        return Ok(mine);
                    }
                }
            }
        }
    };
    let results: Vec<_> = thread::scope(|scope| {
        let handles: Vec<_> = (0..8_u32)
            .map(|part| scope.spawn(move || (0..125).map(|i| attempt(part * 125 + i)).collect::<Vec<_>>()))
            .collect();
        handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect()
    });
    let winners: Vec<_> = results.iter().flatten().collect();
    assert_eq!(winners.len(), 1);
    assert!(results.iter().filter_map(|r| r.as_ref().err()).all(|e| e.reason() == Reason::TokenUsed));
    let who: u32 = winners[0].certificate.trim_start_matches("of ").parse().unwrap();
    assert_eq!(&attempt(who).unwrap(), winners[0]);
}

proptest! {
    #[test]
    fn tokens_round_trip(entropy: [u8; JoinToken::ENTROPY]) {
        let token = JoinToken::from_entropy(&entropy);
        prop_assert_eq!(&token.expose().parse::<JoinToken>().unwrap(), &token);
        let record = JoinTokenRecord::new(&token, "a", at(NOW), JOIN_TOKEN_LIFE);
        prop_assert_eq!(redeem(Some(&record), &token, key(b"a"), "a", at(NOW)), Ok(Redeem::First));
    }

    #[test]
    fn different_entropy_gives_different_tokens(a: [u8; JoinToken::ENTROPY], b: [u8; JoinToken::ENTROPY]) {
        let same = JoinToken::from_entropy(&a) == JoinToken::from_entropy(&b);
        prop_assert_eq!(same, a == b);
    }

    #[test]
    fn any_text_parses_to_itself_or_not_at_all(text in "(fj1\\.)?[0-9a-z]{0,9}\\.?[0-9a-z]{0,40}|\\PC{0,60}") {
        if let Ok(token) = text.parse::<JoinToken>() {
            prop_assert_eq!(token.expose(), text.trim());
        }
    }
}
