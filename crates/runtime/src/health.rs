//! `/livez` and `/readyz` over plain HTTP.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::supervisor::TaskError;

/// What a process still waits for before it is ready. Ready when nothing is left.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    missing: Arc<RwLock<BTreeSet<String>>>,
}

impl Readiness {
    /// Not ready until each of `conditions` was [met](Self::meet).
    pub fn waiting_for<'a>(conditions: impl IntoIterator<Item = &'a str>) -> Self {
        let missing = conditions.into_iter().map(str::to_owned).collect();
        Self { missing: Arc::new(RwLock::new(missing)) }
    }

    /// This condition holds now.
    pub fn meet(&self, condition: &str) {
        self.missing.write().unwrap_or_else(PoisonError::into_inner).remove(condition);
    }

    /// This condition does not hold (any more).
    pub fn miss(&self, condition: &str) {
        self.missing.write().unwrap_or_else(PoisonError::into_inner).insert(condition.to_owned());
    }

    /// What is missing, in order of name; empty when ready.
    pub fn missing(&self) -> Vec<String> {
        self.missing.read().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Answers `/livez` with 200 and `/readyz` with 200 or with 503 and what is missing.
pub async fn serve(
    listener: TcpListener,
    readiness: Readiness,
    cancel: CancellationToken,
) -> Result<(), TaskError> {
    let router =
        Router::new().route("/livez", get(async || "ok")).route("/readyz", get(readyz)).with_state(readiness);
    axum::serve(listener, router).with_graceful_shutdown(cancel.cancelled_owned()).await?;
    Ok(())
}

async fn readyz(State(readiness): State<Readiness>) -> (StatusCode, String) {
    let missing = readiness.missing();
    if missing.is_empty() {
        (StatusCode::OK, "ok".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {}", missing.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn readiness_names_what_is_missing() {
        let readiness = Readiness::waiting_for(["watches", "leadership"]);
        readiness.meet("leadership");
        assert_eq!(
            readyz(State(readiness.clone())).await,
            (StatusCode::SERVICE_UNAVAILABLE, "waiting for watches".to_owned())
        );
        readiness.meet("watches");
        assert_eq!(readyz(State(readiness.clone())).await.0, StatusCode::OK);
        readiness.miss("leadership");
        assert_eq!(readiness.missing(), ["leadership"]);
    }
}
