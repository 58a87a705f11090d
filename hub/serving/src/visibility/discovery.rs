//! What is served here, for kubectl and for kube-apiserver's own discovery and OpenAPI documents.

use axum::Router;
use axum::response::Json;
use axum::routing::get;
use serde_json::{Value, json};

use super::{GROUP, SUBRESOURCE, VERSION};

/// The paths of discovery.
pub(super) fn router() -> Router {
    Router::new()
        .route("/apis", get(async || Json(groups())))
        .route(&format!("/apis/{GROUP}"), get(async || Json(group())))
        .route(&format!("/apis/{GROUP}/{VERSION}"), get(async || Json(resources())))
        .route("/openapi/v2", get(async || Json(openapi_v2())))
        .route("/openapi/v3", get(async || Json(json!({"paths": {}}))))
        .route("/livez", get(async || "ok"))
        .route("/readyz", get(async || "ok"))
        .route("/healthz", get(async || "ok"))
}

fn version() -> Value {
    json!({"groupVersion": format!("{GROUP}/{VERSION}"), "version": VERSION})
}

fn group() -> Value {
    json!({"kind": "APIGroup", "apiVersion": "v1", "name": GROUP, "versions": [version()],
           "preferredVersion": version()})
}

fn groups() -> Value {
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group()]})
}

fn resources() -> Value {
    let part = |name: &str, namespaced: bool| {
        json!({"name": format!("{name}/{SUBRESOURCE}"), "singularName": "", "namespaced": namespaced,
               "kind": "PendingWorkloadsSummary", "verbs": ["get"]})
    };
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{GROUP}/{VERSION}"),
           "resources": [part("clusterqueues", false), part("localqueues", true)]})
}

/// No schemas: the objects here are written by nobody.
fn openapi_v2() -> Value {
    json!({"swagger": "2.0", "info": {"title": "Fairlead", "version": VERSION}, "paths": {}, "definitions": {}})
}
