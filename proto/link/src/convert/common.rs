//! Parts that both directions use.

use std::sync::Arc;

use fairlead_model::{
    Epoch, Floor, Incarnation, Leadership, Nonce, PlacementId, Reason, Resources, RunId, Term,
};
use fairlead_session::{Goodbye, Versions};

use super::{WireError, present};
use crate::wire;

pub(super) fn placement(text: String) -> Result<PlacementId, WireError> {
    if text.is_empty() { Err(WireError::Missing("placement")) } else { Ok(PlacementId::new(text)) }
}

pub(super) fn run(text: String) -> Result<RunId, WireError> {
    if text.is_empty() { Err(WireError::Missing("run")) } else { Ok(RunId::new(text)) }
}

pub(super) const fn epoch_out(epoch: Epoch) -> wire::Epoch {
    wire::Epoch { term: epoch.term.0, seq: epoch.seq }
}

pub(super) fn epoch(epoch: Option<wire::Epoch>) -> Result<Epoch, WireError> {
    present(epoch, "epoch").map(|epoch| Epoch::new(epoch.term, epoch.seq))
}

pub(super) fn leadership_out(leadership: &Leadership) -> wire::Leadership {
    wire::Leadership {
        incarnation: leadership.incarnation.0,
        term: leadership.term.0,
        nonce: leadership.nonce.0.to_string(),
    }
}

pub(super) fn leadership(leadership: Option<wire::Leadership>) -> Result<Leadership, WireError> {
    let wire = present(leadership, "leadership")?;
    Ok(Leadership {
        incarnation: Incarnation(wire.incarnation),
        term: Term(wire.term),
        nonce: Nonce(wire.nonce.into()),
    })
}

pub(super) fn floor_out(floor: &Floor) -> wire::Leadership {
    wire::Leadership {
        incarnation: floor.incarnation.0,
        term: floor.term.0,
        nonce: floor.nonce.0.to_string(),
    }
}

pub(super) fn floor(floor: Option<wire::Leadership>) -> Result<Floor, WireError> {
    leadership(floor).map(|leadership| Floor::from(&leadership))
}

pub(super) fn versions_out(versions: &Versions) -> wire::Versions {
    wire::Versions { fairlead: versions.fairlead.to_string(), kubernetes: versions.kubernetes.to_string() }
}

/// Versions are for people; a peer that says none has none.
pub(super) fn versions(versions: Option<wire::Versions>) -> Versions {
    let wire = versions.unwrap_or_default();
    Versions { fairlead: wire.fairlead.into(), kubernetes: wire.kubernetes.into() }
}

/// A reason by its token. One that this build does not know becomes `otherwise`, and stays readable in the
/// detail.
pub(super) fn reason(token: &str, detail: String, otherwise: Reason) -> (Reason, Arc<str>) {
    match Reason::from_token(token) {
        Some(reason) => (reason, detail.into()),
        None => (otherwise, format!("{token}: {detail}").into()),
    }
}

pub(super) fn goodbye_out(goodbye: &Goodbye) -> wire::Goodbye {
    wire::Goodbye {
        reason: goodbye.reason.token().to_owned(),
        detail: goodbye.detail.to_string(),
        retry_after_ms: goodbye.retry_after_ms,
        incarnation: goodbye.incarnation.0,
    }
}

pub(super) fn goodbye(wire: wire::Goodbye) -> Goodbye {
    let (reason, detail) = reason(&wire.reason, wire.detail, Reason::ProtocolViolation);
    Goodbye {
        reason,
        detail,
        retry_after_ms: wire.retry_after_ms,
        incarnation: Incarnation(wire.incarnation),
    }
}

pub(super) fn amounts_out(resources: &Resources) -> std::collections::BTreeMap<String, i64> {
    resources.iter().map(|(name, amount)| (name.to_string(), amount)).collect()
}

pub(super) fn amounts(wire: std::collections::BTreeMap<String, i64>) -> Resources {
    wire.into_iter().map(|(name, amount)| (name.into(), amount)).collect()
}
