//! SHA-256 fingerprints, one type per thing they are of, so that one is never taken for another.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::error::PkiError;

/// SHA-256 of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, bytes).as_ref());
    out
}

fn parse_sha256(text: &str) -> Result<[u8; 32], PkiError> {
    let digits = text.strip_prefix("sha256:").ok_or(PkiError::Fingerprint)?;
    if digits.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err(PkiError::Fingerprint);
    }
    let mut out = [0; 32];
    hex::decode_to_slice(digits, &mut out).map_err(|_not_hex| PkiError::Fingerprint)?;
    Ok(out)
}

macro_rules! fingerprint {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// Written as `sha256:` and 64 lower-case hex digits, in text and in JSON.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name([u8; 32]);

        impl $name {
            /// The 32 bytes of the digest.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "sha256:{}", hex::encode(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }

        impl FromStr for $name {
            type Err = PkiError;

            fn from_str(text: &str) -> Result<Self, PkiError> {
                parse_sha256(text).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = PkiError;

            fn try_from(text: String) -> Result<Self, PkiError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }
    };
}

fingerprint! {
    /// Which CA to trust before one has its certificate: SHA-256 of the CA certificate's DER.
    CaPin
}

fingerprint! {
    /// Which key: SHA-256 of its SubjectPublicKeyInfo (DER). It stays the same over renewals with one key.
    KeyFingerprint
}

impl CaPin {
    /// The pin of a CA certificate (DER).
    pub fn of(certificate_der: &[u8]) -> Self {
        Self(sha256(certificate_der))
    }
}

impl KeyFingerprint {
    /// The fingerprint of a public key, given as SubjectPublicKeyInfo (DER).
    pub fn of_spki(spki_der: &[u8]) -> Self {
        Self(sha256(spki_der))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips_and_refuses_variants() {
        let pin = CaPin::of(b"a certificate");
        let text = pin.to_string();
        assert_eq!(text.parse::<CaPin>().unwrap(), pin);
        assert_eq!(serde_json::to_string(&pin).unwrap(), format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<CaPin>(&format!("\"{text}\"")).unwrap(), pin);
        let upper = format!("sha256:{}", text["sha256:".len()..].to_uppercase());
        for bad in
            [&text["sha256:".len()..], &text[..text.len() - 1], &format!("{text}0"), &upper, "sha256:", ""]
        {
            assert!(bad.parse::<CaPin>().is_err(), "{bad}");
        }
    }

    #[test]
    fn digest_is_sha256() {
        assert_eq!(
            CaPin::of(b"abc").to_string(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
