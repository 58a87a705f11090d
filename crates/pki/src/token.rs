//! Join tokens: made once, printed once, stored hashed, redeemed by one key.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use fairlead_model::Reason;
use rustls_pki_types::UnixTime;
use serde::{Deserialize, Serialize};

use crate::digest::{KeyFingerprint, sha256};

/// How long a join token may be redeemed unless the admin says otherwise.
pub const JOIN_TOKEN_LIFE: Duration = Duration::from_mins(15);

const PREFIX: &str = "fj1";
const ID_CHARS: usize = 8;
const SECRET_CHARS: usize = 32;
const CHECK_CHARS: usize = 4;

/// Base 32 without `i`, `l`, `o`, `u`, which people misread.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A join token in the clear: `fj1.<id>.<secret and checksum>`.
///
/// The id (8 characters) finds the record, the secret (32 characters, 160 bits) proves the holder, the checksum
/// (4 characters) tells a typing error from a foreign token. It exists in the clear on the admin's screen, in
/// the agent's arguments and on the enrolment connection, and is stored nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    text: String,
}

impl JoinToken {
    /// How many random bytes a token takes: 5 for the id, 20 for the secret.
    pub const ENTROPY: usize = 25;

    /// Makes a token from random bytes, which the caller takes from the operating system and uses once.
    pub fn from_entropy(entropy: &[u8; Self::ENTROPY]) -> Self {
        let (id, secret) = entropy.split_at(5);
        let body = format!("{PREFIX}.{}.{}", base32(id), base32(secret));
        let check = checksum(&body);
        Self { text: format!("{body}{check}") }
    }

    /// The public part, under which the record is stored.
    pub fn id(&self) -> &str {
        &self.text[PREFIX.len() + 1..PREFIX.len() + 1 + ID_CHARS]
    }

    /// The token itself. To be printed to the admin or sent to the pinned hub, never logged.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// What is stored instead of the token.
    pub fn hash(&self) -> TokenHash {
        TokenHash(hex::encode(sha256(self.text.as_bytes())))
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinToken({PREFIX}.{}.…)", self.id())
    }
}

impl FromStr for JoinToken {
    type Err = JoinRefusal;

    fn from_str(text: &str) -> Result<Self, JoinRefusal> {
        let text = text.trim();
        let mistyped = |why| Err(JoinRefusal::Mistyped { why });
        let parts: Vec<&str> = text.split('.').collect();
        let &[prefix, id, tail] = parts.as_slice() else {
            return mistyped("it must have three parts with dots between them");
        };
        if prefix != PREFIX {
            return mistyped("it must begin with fj1");
        }
        if !id.bytes().chain(tail.bytes()).all(|b| ALPHABET.contains(&b)) {
            return mistyped("it has a character that no token has");
        }
        if id.len() != ID_CHARS || tail.len() != SECRET_CHARS + CHECK_CHARS {
            return mistyped("it is too short or too long");
        }
        let (body, check) = text.split_at(text.len() - CHECK_CHARS);
        if checksum(body) != check {
            return mistyped("its checksum is wrong");
        }
        Ok(Self { text: text.to_owned() })
    }
}

/// SHA-256 of a whole token, hex. The secret has 160 random bits, so no salt or slow hash is needed.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenHash(String);

impl TokenHash {
    /// Compares without telling by its duration where the difference is.
    fn is_of(&self, token: &JoinToken) -> bool {
        verify_slices_are_equal(self.0.as_bytes(), token.hash().0.as_bytes()).is_ok()
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// What the hub stores of a token, under its id.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinTokenRecord {
    /// Name of the one `Cluster` that it lets in.
    pub cluster: String,
    /// Hash of the token.
    pub hash: TokenHash,
    /// Last second (since 1970) at which it can be redeemed.
    pub expires_at: u64,
    /// Set, in the one compare-and-set write that also burns the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redeemed: Option<Redemption>,
}

/// Who redeemed a token, and what they got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Redemption {
    /// The key that asked.
    pub key: KeyFingerprint,
    /// The certificate issued for it, PEM.
    pub certificate: String,
    /// Last second (since 1970) at which the certificate is valid.
    pub certificate_expires_at: u64,
}

impl JoinTokenRecord {
    /// The record of a fresh token for the cluster of this name.
    pub fn new(token: &JoinToken, cluster: impl Into<String>, now: UnixTime, life: Duration) -> Self {
        Self {
            cluster: cluster.into(),
            hash: token.hash(),
            expires_at: now.as_secs().saturating_add(life.as_secs()),
            redeemed: None,
        }
    }
}

/// What a valid token gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redeem {
    /// Nobody used it yet: issue a certificate, then write it into the record by compare-and-set. Who loses
    /// that race reads the record again and asks [`redeem`] again.
    First,
    /// The same key asks again, since the reply was lost: give it the same certificate.
    Again(Redemption),
}

/// Why a join is refused. The text is for the person at the spoke; [`JoinRefusal::reason`] is for both sides' logs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinRefusal {
    /// Right token, too late.
    #[error(
        "the join token expired {seconds_ago} s ago; make a new one with `kubectl fairlead join {cluster}`"
    )]
    Expired {
        /// How long ago.
        seconds_ago: u64,
        /// The cluster it was for.
        cluster: String,
    },
    /// A well-formed token that this hub did not issue.
    #[error("this hub did not issue the join token, or has forgotten it; was it made by another hub?")]
    Unknown,
    /// Not a token at all, or one with a typing error.
    #[error("the join token is mistyped: {why}; copy it whole from the output of `kubectl fairlead join`")]
    Mistyped {
        /// What is wrong with it.
        why: &'static str,
    },
    /// The token was used by another key already.
    #[error(
        "the join token was already used, with another key ({key}); if that was not you, remove the cluster and \
         make a new token with `kubectl fairlead join {cluster}`"
    )]
    UsedWithAnotherKey {
        /// The key that used it.
        key: KeyFingerprint,
        /// The cluster it was for.
        cluster: String,
    },
    /// The token is bound to another cluster name.
    #[error("the join token is for the cluster {bound:?}, not for {claimed:?}")]
    WrongName {
        /// The name it is bound to.
        bound: String,
        /// The name the agent gave.
        claimed: String,
    },
}

impl JoinRefusal {
    /// The stable token for logs, events and the wire.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Expired { .. } => Reason::TokenExpired,
            Self::Unknown => Reason::TokenUnknown,
            Self::Mistyped { .. } => Reason::TokenMistyped,
            Self::UsedWithAnotherKey { .. } => Reason::TokenUsed,
            Self::WrongName { .. } => Reason::TokenWrongName,
        }
    }
}

/// Decides about a join. `record` is what is stored under the token's id, `key` the fingerprint of a *verified*
/// signing request, `cluster` the name that the agent claims.
///
/// Whoever does not know the secret learns nothing but [`JoinRefusal::Unknown`]. A repeated request with the
/// same key is answered for as long as the certificate lives, even when the token has meanwhile expired: the
/// reply that was lost has burnt nothing.
pub fn redeem(
    record: Option<&JoinTokenRecord>,
    token: &JoinToken,
    key: KeyFingerprint,
    cluster: &str,
    now: UnixTime,
) -> Result<Redeem, JoinRefusal> {
    let record = record.filter(|record| record.hash.is_of(token)).ok_or(JoinRefusal::Unknown)?;
    let expired = |at: u64| JoinRefusal::Expired {
        seconds_ago: now.as_secs().saturating_sub(at),
        cluster: record.cluster.clone(),
    };
    if record.cluster != cluster {
        return Err(JoinRefusal::WrongName { bound: record.cluster.clone(), claimed: cluster.to_owned() });
    }
    match &record.redeemed {
        Some(by) if by.key != key => {
            Err(JoinRefusal::UsedWithAnotherKey { key: by.key, cluster: record.cluster.clone() })
        }
        Some(by) if now.as_secs() > by.certificate_expires_at => Err(expired(record.expires_at)),
        Some(by) => Ok(Redeem::Again(by.clone())),
        None if now.as_secs() > record.expires_at => Err(expired(record.expires_at)),
        None => Ok(Redeem::First),
    }
}

/// Five bits a character, no padding; the inputs here have whole multiples of five bytes.
fn base32(bytes: &[u8]) -> String {
    let mut out = String::new();
    let (mut buffer, mut bits) = (0_u32, 0_u32);
    for &byte in bytes {
        buffer = ((buffer & 0x1f) << 8) | u32::from(byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            out.push(digit(buffer >> bits));
        }
    }
    out
}

fn digit(value: u32) -> char {
    let index = usize::try_from(value & 0x1f).unwrap_or_default();
    char::from(ALPHABET[index])
}

/// Four characters (20 bits) of the SHA-256 of what precedes them.
fn checksum(body: &str) -> String {
    let mut text = base32(&sha256(body.as_bytes())[..5]);
    text.truncate(CHECK_CHARS);
    text
}
