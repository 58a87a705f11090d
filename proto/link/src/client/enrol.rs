//! Asking for a certificate.

use std::sync::Arc;
use std::time::Duration;

use fairlead_model::Reason;
use fairlead_pki::tls::enrolment_client;
use fairlead_pki::{CaPin, PkiError, TimeProvider, UnixTime};

use super::dial::{DialError, Dialer};
use crate::enrol::{EnrolRefusal, EnrolRequest, Enrolled};
use crate::pump;
use crate::wire::enrol_reply::Outcome;
use crate::wire::enrolment_client::EnrolmentClient;
use crate::wire::{self, EnrolReply};

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnrolError {
    /// The hub said no.
    #[error("the hub refuses to let this spoke join: {0}")]
    Refused(EnrolRefusal),
    /// The hub was not reached, or is not the one whose CA is pinned. May be tried again.
    #[error(transparent)]
    Unreachable(#[from] DialError),
    /// The hub's answer cannot be used.
    #[error("the hub's answer cannot be used: {0}")]
    Answer(String),
    /// The pin or the TLS settings are bad.
    #[error(transparent)]
    Tls(#[from] PkiError),
}

/// Redeems a join token at the hub, which must prove to have a certificate of the pinned CA.
///
/// One attempt, of at most [`super::CONNECT_TIMEOUT`]. Asking again with the same key and token is harmless: the
/// hub gives the same certificate again.
pub async fn enrol(
    address: &str,
    pin: CaPin,
    time: Arc<dyn TimeProvider>,
    request: EnrolRequest,
) -> Result<Enrolled, EnrolError> {
    let dialer = Dialer::new(address, enrolment_client(pin, time)?)?;
    let reply = dialer.in_time(ask(&dialer, request)).await?;
    match reply.outcome {
        Some(Outcome::Enrolled(enrolled)) => accept(enrolled, pin),
        Some(Outcome::Refused(refused)) => Err(EnrolError::Refused(refusal(refused))),
        None => Err(EnrolError::Answer("it says neither yes nor no".to_owned())),
    }
}

async fn ask(dialer: &Dialer, request: EnrolRequest) -> Result<EnrolReply, DialError> {
    let mut client = EnrolmentClient::new(dialer.channel().await?);
    let EnrolRequest { cluster, token, csr_der } = request;
    let asked = client.enrol(wire::EnrolRequest { cluster, token, csr: csr_der }).await;
    let address = dialer.address();
    asked
        .map(tonic::Response::into_inner)
        .map_err(|status| DialError::Connect { address: address.to_owned(), why: pump::explain(&status) })
}

fn accept(wire: wire::Enrolled, pin: CaPin) -> Result<Enrolled, EnrolError> {
    // The connection proved that the hub has the pinned CA; this proves that it also sends that one.
    pin.check_pem(&wire.ca)?;
    if wire.certificate.is_empty() || wire.cluster_uid.is_empty() {
        return Err(EnrolError::Answer("certificate or cluster UID is missing".to_owned()));
    }
    Ok(Enrolled {
        certificate_pem: wire.certificate,
        ca_pem: wire.ca,
        cluster_uid: wire.cluster_uid,
        expires: UnixTime::since_unix_epoch(Duration::from_secs(wire.expires)),
    })
}

fn refusal(wire: wire::Refused) -> EnrolRefusal {
    match Reason::from_token(&wire.reason) {
        Some(reason) => EnrolRefusal { reason, detail: wire.detail },
        None => {
            EnrolRefusal { reason: Reason::SpokeRefused, detail: format!("{}: {}", wire.reason, wire.detail) }
        }
    }
}
