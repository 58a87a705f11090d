//! Near misses of an identity (threat T1): nothing but the exact text is accepted.

use proptest::prelude::*;

use super::*;

const UID: &str = "0c9f4c1e-52d8-4a44-8f3e-2f6f1c1a7f10";

fn domain() -> TrustDomain {
    "fairlead.example.com".parse().unwrap()
}

fn good() -> String {
    format!("spiffe://fairlead.example.com/cluster/{UID}")
}

/// Accepting `uri` is right only if the URI says, byte for byte, what was read from it.
fn assert_exact(uri: &str) -> bool {
    let Ok(identity) = SpokeIdentity::from_uri(uri, &domain()) else {
        return false;
    };
    assert_eq!(identity.uri(), uri);
    assert!(uri.starts_with("spiffe://fairlead.example.com/cluster/"));
    assert_eq!(uri.matches('/').count(), 4, "{uri}");
    assert_eq!(identity.trust_domain(), &domain());
    true
}

#[test]
fn reads_what_it_writes() {
    let identity = SpokeIdentity::issue(domain(), UID.parse().unwrap());
    assert_eq!(identity.uri(), good());
    assert_eq!(SpokeIdentity::from_uri(&good(), &domain()).unwrap(), identity);
}

#[test]
fn named_near_misses_are_refused() {
    let base = "spiffe://fairlead.example.com/cluster/";
    let other_domain = "spiffe://fairlead.example.com.evil.org/cluster/";
    for bad in [
        String::new(),
        base.to_owned(),
        good().to_uppercase(),
        format!("{base}{}", UID.to_uppercase()),
        format!("{other_domain}{UID}"),
        format!("spiffe://evil.org/fairlead.example.com/cluster/{UID}"),
        format!("spiffe://fairlead.example.com:443/cluster/{UID}"),
        format!("spiffe://user@fairlead.example.com/cluster/{UID}"),
        format!("spiffe://fairlead.example.com/cluster//{UID}"),
        format!("spiffe://fairlead.example.com/clusters/{UID}"),
        format!("spiffe://fairlead.example.com/x/cluster/{UID}"),
        format!("SPIFFE://fairlead.example.com/cluster/{UID}"),
        format!("https://fairlead.example.com/cluster/{UID}"),
        format!("{base}{UID}/"),
        format!("{base}{UID}/admin"),
        format!("{base}x/../{UID}"),
        format!("{base}{UID}?a=b"),
        format!("{base}{UID}#frag"),
        format!("{base}{UID}\0"),
        format!("{base}{UID}\n"),
        format!(" {base}{UID}"),
        format!("{base}%30{}", &UID[1..]),
        format!("{base}{}", UID.replace('-', "\u{2010}")),
        format!("{base}{}", "a".repeat(64)),
    ] {
        assert!(SpokeIdentity::from_uri(&bad, &domain()).is_err(), "{bad:?}");
    }
}

/// All texts one edit away (each byte replaced, removed, or preceded by each ASCII byte), exhaustively:
/// those in the prefix are refused, those in the UID give a *different* UID or are refused.
#[test]
fn every_single_edit_names_another_cluster_or_nobody() {
    let good = good();
    let prefix = good.len() - UID.len();
    let ours = SpokeIdentity::from_uri(&good, &domain()).unwrap();
    let mut accepted = 0_u32;
    for at in 0..=good.len() {
        for byte in 0..=127_u8 {
            let c = char::from(byte);
            let mut edits = vec![format!("{}{c}{}", &good[..at], &good[at..])];
            if at < good.len() {
                edits.push(format!("{}{c}{}", &good[..at], &good[at + 1..]));
                edits.push(format!("{}{}", &good[..at], &good[at + 1..]));
            }
            for edit in edits.iter().filter(|edit| **edit != good) {
                if assert_exact(edit) {
                    accepted += 1;
                    assert!(at >= prefix, "an edit of the prefix was accepted: {edit}");
                    assert_ne!(SpokeIdentity::from_uri(edit, &domain()).unwrap(), ours);
                }
            }
        }
    }
    assert!(accepted > 0, "UIDs of other clusters are names too");
}

/// A small generator of random near misses, fast enough for a million of them in a debug build.
struct Mutations(u64);

impl Mutations {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % below
    }

    fn mutate(&mut self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        let pieces: [&[u8]; 8] =
            [b"/", b"..", b"%2f", b"cluster/", b"spiffe://", b"-", b"\0", b"fairlead.example.com"];
        for _ in 0..=self.next(3) {
            let at = self.next(bytes.len().max(1));
            let to = (at + 1 + self.next(4)).min(bytes.len());
            match self.next(4) {
                0 => drop(bytes.drain(at..to)),
                1 => bytes.extend_from_within(at..to),
                2 => drop(bytes.splice(at..at, pieces[self.next(pieces.len())].iter().copied())),
                _ => bytes[at] = u8::try_from(self.next(128)).unwrap(),
            }
            if bytes.is_empty() {
                bytes.push(b'x');
            }
        }
        String::from_utf8(bytes).unwrap()
    }
}

#[test]
fn a_million_random_near_misses() {
    let ours = SpokeIdentity::from_uri(&good(), &domain()).unwrap();
    let mut mutations = Mutations(0x2545_f491_4f6c_dd1d);
    for _ in 0..1_000_000 {
        let text = mutations.mutate(&good());
        if assert_exact(&text) && text != good() {
            assert_ne!(SpokeIdentity::from_uri(&text, &domain()).unwrap(), ours);
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_exactly_or_not_at_all(text in "\\PC{0,90}") {
        assert_exact(&text);
    }

    #[test]
    fn any_uid_round_trips(uid in "[a-z0-9-]{1,63}") {
        let identity = SpokeIdentity::issue(domain(), uid.parse().unwrap());
        prop_assert_eq!(SpokeIdentity::from_uri(&identity.uri(), &domain()).unwrap(), identity);
    }

    #[test]
    fn one_domain_does_not_read_the_other(a in "[a-z]{1,8}(\\.[a-z]{1,8}){0,2}", b in "[a-z]{1,8}(\\.[a-z]{1,8}){0,2}") {
        let (a, b): (TrustDomain, TrustDomain) = (a.parse().unwrap(), b.parse().unwrap());
        let identity = SpokeIdentity::issue(a.clone(), UID.parse().unwrap());
        prop_assert_eq!(SpokeIdentity::from_uri(&identity.uri(), &b).is_ok(), a == b);
    }
}
