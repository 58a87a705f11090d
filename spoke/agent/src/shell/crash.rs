//! The agent's crash points that lie in the pump. Without the feature `crash-points` all of it is empty.

use fairlead_session::{HubFrame, SpokeFrame};

#[cfg(feature = "crash-points")]
mod points {
    use std::sync::Mutex;
    use std::sync::PoisonError;

    use fairlead_model::PlacementId;
    use fairlead_runtime::{CrashPoint, crash_point};
    use fairlead_session::CopyState;

    use super::{HubFrame, SpokeFrame};

    /// The acceptances that were sent and not received yet.
    static ACCEPTED: Mutex<Vec<(PlacementId, u64)>> = Mutex::new(Vec::new());

    /// Before a frame is sent: a result is known here, and nobody else knows it.
    pub(in super::super) fn about_to_send(frame: &SpokeFrame) {
        let SpokeFrame::Observe(placement, observation) = frame else { return };
        match &observation.state {
            CopyState::Accepted => {
                let accepted = (placement.clone(), observation.version);
                ACCEPTED.lock().unwrap_or_else(PoisonError::into_inner).push(accepted);
            }
            CopyState::Live(status) if status.terminal.is_some() => crash_point(CrashPoint::SpokeAfterResult),
            CopyState::Live(_)
            | CopyState::Refused(_)
            | CopyState::Stopping(_)
            | CopyState::Stopped(_)
            | CopyState::Vanished => {}
        }
    }

    /// After a frame was received: the hub has an acceptance, and will act on it.
    pub(in super::super) fn received(frame: &HubFrame) {
        let HubFrame::ObservationReceived(placement, _boot, version) = frame else { return };
        let mut accepted = ACCEPTED.lock().unwrap_or_else(PoisonError::into_inner);
        let before = accepted.len();
        accepted.retain(|sent| (&sent.0, &sent.1) != (placement, version));
        if accepted.len() < before {
            crash_point(CrashPoint::SpokeAfterAccepting);
        }
    }
}

#[cfg(not(feature = "crash-points"))]
mod points {
    use super::{HubFrame, SpokeFrame};

    /// Nothing to do.
    pub(in super::super) const fn about_to_send(_frame: &SpokeFrame) {}

    /// Nothing to do.
    pub(in super::super) const fn received(_frame: &HubFrame) {}
}

pub(super) use points::{about_to_send, received};
