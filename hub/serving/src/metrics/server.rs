//! Where metrics are scraped.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fairlead_controller::brain::Brain;
use fairlead_controller::shell::Asker;
use tracing::warn;

use super::Metrics;
use crate::auth::{Access, Reviews, bearer};

/// The text format of Prometheus.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the endpoint needs.
#[derive(Clone, Debug)]
pub struct MetricsServer<R> {
    /// What is measured.
    pub metrics: Arc<Metrics>,
    /// The brain, where this process leads.
    pub brain: Option<Asker<Brain>>,
    /// Who may scrape.
    pub reviews: R,
}

/// Answers `GET /metrics` to whoever may read that path.
pub fn router<R: Reviews>(server: MetricsServer<R>) -> Router {
    Router::new().route("/metrics", get(scrape::<R>)).with_state(Arc::new(server))
}

async fn scrape<R: Reviews>(State(server): State<Arc<MetricsServer<R>>>, headers: HeaderMap) -> Response {
    let caller = match bearer(&headers) {
        Some(token) => server.reviews.token(token).await,
        None => return StatusCode::UNAUTHORIZED.into_response(),
    };
    match caller {
        Ok(Some(caller)) => match server.reviews.allows(&caller, &Access::Path("/metrics")).await {
            Ok(true) => text(&server).await,
            Ok(false) => StatusCode::FORBIDDEN.into_response(),
            Err(why) => unavailable(&why.to_string()),
        },
        Ok(None) => StatusCode::UNAUTHORIZED.into_response(),
        Err(why) => unavailable(&why.to_string()),
    }
}

async fn text<R: Reviews>(server: &MetricsServer<R>) -> Response {
    let gauges = match &server.brain {
        Some(brain) => match brain.ask(Brain::gauges).await {
            Ok(gauges) => Some(gauges),
            Err(why) => return unavailable(&why.to_string()),
        },
        None => None,
    };
    match server.metrics.text(gauges.as_ref()) {
        Ok(text) => ([(header::CONTENT_TYPE, TEXT)], text).into_response(),
        Err(why) => {
            warn!(%why, "metrics cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

fn unavailable(why: &str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, why.to_owned()).into_response()
}
