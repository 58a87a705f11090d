//! Requests as kube-apiserver sends them, without sockets.

use std::collections::BTreeMap;
use std::sync::Mutex;

use axum::body::{Body, to_bytes};
use axum::http::Request as HttpRequest;
use rustls_pki_types::CertificateDer;
use serde_json::Value;
use tower::ServiceExt as _;

use super::*;
use crate::auth::Unanswered;
use crate::front_proxy::testing::{proxy, proxy_certificate};

const BASE: &str = "/apis/visibility.kueue.x-k8s.io/v1beta2";

/// `ada` may see everything; what was asked is kept.
#[derive(Clone, Default)]
struct Rights(Arc<Mutex<Vec<String>>>);

impl Reviews for Rights {
    async fn token(&self, _token: &str) -> Result<Option<Caller>, Unanswered> {
        Ok(None)
    }

    async fn allows(&self, caller: &Caller, access: &Access<'_>) -> Result<bool, Unanswered> {
        let Access::Part { resource, subresource, key, .. } = access else { return Ok(false) };
        let line = format!("{} {resource}/{subresource} {}", caller.user, shown(key));
        self.0.lock().unwrap().push(line);
        match caller.user.as_str() {
            "down" => Err(Unanswered("refused".into())),
            user => Ok(user == "ada"),
        }
    }
}

/// One ClusterQueue `cq` with three workloads, one LocalQueue `team/q`; keeps the offsets and limits it was asked for.
#[derive(Clone, Default)]
struct Three(Arc<Mutex<Vec<(u32, u32)>>>);

impl Lines for Three {
    async fn pending(
        &self,
        line: Line,
        offset: u32,
        limit: u32,
    ) -> Result<Option<Vec<PendingWorkload>>, String> {
        self.0.lock().unwrap().push((offset, limit));
        let known = match &line {
            Line::ClusterQueue(name) => &**name == "cq",
            Line::LocalQueue(key) => *key == ObjectKey::new("team", "q"),
        };
        let workload = |position: u32| PendingWorkload {
            key: ObjectKey::new("team", format!("job-{position}")),
            owner_references: json!([{"kind": "Job", "name": "job"}]),
            created: "2026-01-01T00:00:00Z".into(),
            priority: 7,
            local_queue: "q".into(),
            position_in_cluster_queue: position,
            position_in_local_queue: position,
        };
        let all = (offset..3).take(usize::try_from(limit).unwrap()).map(workload);
        Ok(known.then(|| all.collect()))
    }
}

struct World {
    router: Router,
    rights: Rights,
    asked: Three,
}

fn world() -> World {
    let (rights, asked) = (Rights::default(), Three::default());
    let front = FrontProxy::default();
    front.set(proxy(&["front-proxy-client"]));
    let router = router(Visibility { lines: asked.clone(), reviews: rights.clone(), proxy: front });
    World { router, rights, asked }
}

impl World {
    async fn ask(
        &self,
        path: &str,
        user: &str,
        certificate: Option<CertificateDer<'static>>,
    ) -> (u16, Value) {
        let peer = Peer { address: ([127, 0, 0, 1], 1).into(), certificate };
        let request = HttpRequest::get(path).header("X-Remote-User", user).extension(ConnectInfo(peer));
        let answer = self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let code = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn as_ada(&self, path: &str) -> (u16, Value) {
        self.ask(&format!("{BASE}{path}"), "ada", Some(proxy_certificate("front-proxy-client"))).await
    }
}

#[tokio::test]
async fn a_line_is_shown_with_positions_in_kueues_form() {
    let world = world();
    let (code, body) = world.as_ada("/clusterqueues/cq/pendingworkloads").await;
    assert_eq!(code, 200);
    assert_eq!(
        (&body["kind"], &body["apiVersion"]),
        (&json!("PendingWorkloadsSummary"), &json!("visibility.kueue.x-k8s.io/v1beta2"))
    );
    assert_eq!(body["items"].as_array().unwrap().len(), 3);
    let expected = json!({
        "metadata": {"name": "job-1", "namespace": "team", "creationTimestamp": "2026-01-01T00:00:00Z",
                     "ownerReferences": [{"kind": "Job", "name": "job"}]},
        "priority": 7, "localQueueName": "q", "positionInClusterQueue": 1, "positionInLocalQueue": 1,
    });
    assert_eq!(body["items"][1], expected);
    let (code, body) = world.as_ada("/namespaces/team/localqueues/q/pendingworkloads?offset=2").await;
    assert_eq!((code, body["items"].as_array().unwrap().len()), (200, 1));
    let rights = world.rights.0.lock().unwrap().clone();
    assert_eq!(rights, ["ada clusterqueues/pendingworkloads cq", "ada localqueues/pendingworkloads team/q"]);
}

#[tokio::test]
async fn hostile_offsets_and_limits_are_kept_within_bounds() {
    let world = world();
    for (query, wanted) in [
        ("", (0, 1_000)),
        ("?offset=2&limit=1", (2, 1)),
        ("?offset=-5&limit=-1", (0, 0)),
        ("?limit=100001", (0, 100_000)),
        ("?limit=99999999999999999999&offset=99999999999999999999", (u32::MAX, 100_000)),
        ("?limit=many&offset=%00", (0, 1_000)),
        ("?limit=&offset=", (0, 1_000)),
        ("?watch=true&other=1", (0, 1_000)),
    ] {
        let (code, _) = world.as_ada(&format!("/clusterqueues/cq/pendingworkloads{query}")).await;
        let asked = world.asked.0.lock().unwrap().pop();
        assert_eq!((code, asked), (200, Some(wanted)), "{query}");
    }
}

#[tokio::test]
async fn unknown_queues_and_paths_are_not_found_in_kubernetes_words() {
    let world = world();
    for path in [
        "/clusterqueues/other/pendingworkloads",
        "/namespaces/team/localqueues/x/pendingworkloads",
        "/clusterqueues",
        "/x",
    ] {
        let (code, body) = world.as_ada(path).await;
        assert_eq!(
            (code, &body["kind"], &body["reason"]),
            (404, &json!("Status"), &json!("NotFound")),
            "{path}"
        );
    }
}

#[tokio::test]
async fn only_the_front_proxy_is_answered_and_only_for_who_may() {
    let world = world();
    let path = format!("{BASE}/clusterqueues/cq/pendingworkloads");
    let named = |name: &str| Some(proxy_certificate(name));
    for (user, certificate, code) in [
        ("ada", None, 401),
        ("ada", named("somebody-else"), 401),
        ("", named("front-proxy-client"), 401),
        ("bob", named("front-proxy-client"), 403),
        ("down", named("front-proxy-client"), 503),
        ("ada", named("front-proxy-client"), 200),
    ] {
        let (got, _) = world.ask(&path, user, certificate.clone()).await;
        assert_eq!(got, code, "{user} with {}", certificate.is_some());
    }
    assert_eq!(world.asked.0.lock().unwrap().len(), 1, "nobody else reached the brain");
}

#[tokio::test]
async fn discovery_names_what_is_served() {
    let world = world();
    let certificate = || Some(proxy_certificate("front-proxy-client"));
    let (_, list) = world.ask(BASE, "ada", certificate()).await;
    let names: BTreeMap<&str, bool> = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["namespaced"].as_bool().unwrap()))
        .collect();
    let expected = [("clusterqueues/pendingworkloads", false), ("localqueues/pendingworkloads", true)];
    assert_eq!(names, expected.into());
    let (code, groups) = world.ask("/apis", "ada", certificate()).await;
    assert_eq!((code, &groups["groups"][0]["name"]), (200, &json!(GROUP)));
    for path in ["/openapi/v2", "/openapi/v3", "/livez"] {
        assert_eq!(world.ask(path, "ada", certificate()).await.0, 200, "{path}");
    }
}
