//! The visibility API: an aggregated API that shows who waits before a queue, in queue order.
//!
//! kube-apiserver passes requests on ([`FrontProxy`]) and has authorised them; here they are authorised again, as an
//! extension API server must, since whoever reaches this port could claim to be the proxy's user otherwise. Nothing is
//! stored: each answer is the brain's at that moment.

pub mod api_service;
mod discovery;
mod summary;

use std::sync::Arc;

use axum::Extension;
use axum::Router;
use axum::extract::{ConnectInfo, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use fairlead_controller::measure::PendingWorkload;
use fairlead_model::ObjectKey;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::auth::{Access, Caller, Reviews};
use crate::front_proxy::FrontProxy;
use crate::https::Peer;

/// The API group.
pub const GROUP: &str = "visibility.kueue.x-k8s.io";
/// Its version.
pub const VERSION: &str = "v1beta2";
/// The name of the APIService.
pub const API_SERVICE: &str = "v1beta2.visibility.kueue.x-k8s.io";

const SUBRESOURCE: &str = "pendingworkloads";
/// How many workloads are shown unless the caller says otherwise, and at most.
const LIMIT: (u32, u32) = (1_000, 100_000);
/// Questions to the brain side by side; it decides nothing while it answers one.
const AT_ONCE: usize = 4;

/// Whose line is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A ClusterQueue's.
    ClusterQueue(Arc<str>),
    /// A LocalQueue's.
    LocalQueue(ObjectKey),
}

/// Who knows the lines: the brain, or a stand-in in tests.
pub trait Lines: Clone + Send + Sync + 'static {
    /// At most `limit` of a line from `offset` on; none when there is no such queue. An error when nobody knows.
    fn pending(
        &self,
        line: Line,
        offset: u32,
        limit: u32,
    ) -> impl Future<Output = Result<Option<Vec<PendingWorkload>>, String>> + Send;
}

impl Lines for fairlead_controller::shell::Asker<fairlead_controller::brain::Brain> {
    async fn pending(
        &self,
        line: Line,
        offset: u32,
        limit: u32,
    ) -> Result<Option<Vec<PendingWorkload>>, String> {
        let answer = self.ask(move |brain| match &line {
            Line::ClusterQueue(name) => brain.pending_in_cluster_queue(name, offset, limit),
            Line::LocalQueue(key) => brain.pending_in_local_queue(key, offset, limit),
        });
        answer.await.map_err(|why| why.to_string())
    }
}

/// What the API needs.
#[derive(Clone, Debug)]
pub struct Visibility<L, R> {
    /// Who knows the lines.
    pub lines: L,
    /// Who knows rights.
    pub reviews: R,
    /// Who passes requests on.
    pub proxy: FrontProxy,
}

struct Shared<L, R> {
    api: Visibility<L, R>,
    room: Semaphore,
}

/// The API's paths.
pub fn router<L: Lines, R: Reviews>(api: Visibility<L, R>) -> Router {
    let proxy = api.proxy.clone();
    let base = format!("/apis/{GROUP}/{VERSION}");
    let shared = Arc::new(Shared { api, room: Semaphore::new(AT_ONCE) });
    Router::new()
        .route(&format!("{base}/clusterqueues/{{name}}/{SUBRESOURCE}"), get(of_cluster_queue::<L, R>))
        .route(
            &format!("{base}/namespaces/{{namespace}}/localqueues/{{name}}/{SUBRESOURCE}"),
            get(of_local_queue::<L, R>),
        )
        .with_state(shared)
        .merge(discovery::router())
        .fallback(async || {
            status(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
        })
        .layer(from_fn_with_state(proxy, known))
}

/// Lets only the API server's front proxy in, and says for whom it speaks.
async fn known(
    State(proxy): State<FrontProxy>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    match proxy.caller(peer.certificate.as_ref(), request.headers()) {
        Some(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        None => status(StatusCode::UNAUTHORIZED, "Unauthorized", "ask by way of the Kubernetes API server"),
    }
}

/// What may be asked. Values that are not numbers count as not given, as in Kueue; negative ones as zero.
#[derive(Debug, Default, Deserialize)]
struct Asked {
    offset: Option<String>,
    limit: Option<String>,
}

impl Asked {
    fn offset(&self) -> u32 {
        number(self.offset.as_deref()).unwrap_or(0)
    }

    fn limit(&self) -> u32 {
        number(self.limit.as_deref()).unwrap_or(LIMIT.0).min(LIMIT.1)
    }
}

/// A number, kept within what fits; none for text that is no number.
fn number(text: Option<&str>) -> Option<u32> {
    let text = text?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(if text.starts_with('-') { 0 } else { digits.parse().unwrap_or(u32::MAX) })
}

async fn of_cluster_queue<L: Lines, R: Reviews>(
    State(shared): State<Arc<Shared<L, R>>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
) -> Response {
    let key = ObjectKey::new("", name.as_str());
    shared.answer(&caller, "clusterqueues", (&key, Line::ClusterQueue(Arc::clone(&key.name))), &asked).await
}

async fn of_local_queue<L: Lines, R: Reviews>(
    State(shared): State<Arc<Shared<L, R>>>,
    Extension(caller): Extension<Caller>,
    Path((namespace, name)): Path<(String, String)>,
    Query(asked): Query<Asked>,
) -> Response {
    let key = ObjectKey::new(namespace, name);
    shared.answer(&caller, "localqueues", (&key, Line::LocalQueue(key.clone())), &asked).await
}

impl<L: Lines, R: Reviews> Shared<L, R> {
    async fn answer(
        &self,
        caller: &Caller,
        resource: &str,
        (key, line): (&ObjectKey, Line),
        asked: &Asked,
    ) -> Response {
        let access = Access::Part { group: GROUP, version: VERSION, resource, subresource: SUBRESOURCE, key };
        match self.api.reviews.allows(caller, &access).await {
            Ok(true) => {}
            Ok(false) => {
                let message =
                    format!("{} cannot get {resource}/{SUBRESOURCE} of {}", caller.user, shown(key));
                return status(StatusCode::FORBIDDEN, "Forbidden", &message);
            }
            Err(why) => {
                return status(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", &why.to_string());
            }
        }
        let Ok(_room) = self.room.acquire().await else {
            return status(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "the hub is stopping");
        };
        match self.api.lines.pending(line, asked.offset(), asked.limit()).await {
            Ok(Some(workloads)) => Json(summary::of(&workloads)).into_response(),
            Ok(None) => {
                let message = format!("{resource}.{GROUP} \"{}\" not found", key.name);
                status(StatusCode::NOT_FOUND, "NotFound", &message)
            }
            Err(why) => status(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", &why),
        }
    }
}

fn shown(key: &ObjectKey) -> String {
    if key.namespace.is_empty() { key.name.to_string() } else { format!("{}/{}", key.namespace, key.name) }
}

/// A failure as Kubernetes' clients read it.
fn status(code: StatusCode, reason: &str, message: &str) -> Response {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    (code, HeaderMap::new(), Json(body)).into_response()
}

#[cfg(test)]
mod tests;
