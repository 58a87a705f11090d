//! A watch against an API server that answers from a script: what reaches the receiver, and what is asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use ::http::{Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

const JOBS: Resource = Resource::new("batch", "v1", "jobs", true);

/// Answers in order, and what was asked for.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<VecDeque<(StatusCode, String)>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Script {
    fn then(self, code: StatusCode, body: impl Into<String>) -> Self {
        self.answers.lock().unwrap().push_back((code, body.into()));
        self
    }

    fn list(self, version: u64, items: &[Value]) -> Self {
        let page = json!({"metadata": {"resourceVersion": version.to_string()}, "items": items});
        self.then(StatusCode::OK, page.to_string())
    }

    fn watch(self, lines: &[Value]) -> Self {
        self.then(StatusCode::OK, lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n")
    }

    fn client(&self) -> Client {
        let script = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let script = script.clone();
            async move {
                script.asked.lock().unwrap().push(request.uri().to_string());
                let next = script.answers.lock().unwrap().pop_front();
                // After the script nothing is answered any more.
                let Some((code, body)) = next else { return std::future::pending().await };
                Response::builder().status(code).body(Body::from(body.into_bytes()))
            }
        });
        Client::new(service, "default")
    }

    fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        // The time-out of a watch is random.
        asked.iter().map(|uri| uri.split("&timeoutSeconds").next().unwrap_or_default().to_owned()).collect()
    }
}

fn job(name: &str, version: u64) -> Value {
    json!({"metadata": {"namespace": "a", "name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string()}})
}

fn line(kind: &str, object: &Value) -> Value {
    json!({"type": kind, "object": object})
}

fn short(event: &Event) -> String {
    match event {
        Event::Upsert(object) => format!("+{}@{}", object.key.name, object.version),
        Event::Gone { key, version, last, .. } => {
            format!("-{}@{version}{}", key.name, if last.is_some() { "*" } else { "" })
        }
        Event::Synced => "synced".to_owned(),
    }
}

/// Runs a watch against the script until `count` events have come.
async fn follow(script: &Script, count: usize) -> Vec<String> {
    let (sender, mut events) = mpsc::channel(1);
    let cancel = CancellationToken::new();
    let target = Target::all(JOBS);
    let running = tokio::spawn(run(script.client(), target, sender, |event| event, cancel.clone()));
    let mut seen = Vec::new();
    while seen.len() < count {
        seen.push(short(&events.recv().await.unwrap()));
    }
    cancel.cancel();
    running.await.unwrap();
    assert!(events.try_recv().is_err(), "more than {seen:?}");
    seen
}

#[tokio::test]
async fn after_410_the_kind_is_listed_anew_and_what_vanished_is_gone() {
    let expired = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
    let script = Script::default()
        .list(10, &[job("x", 5), job("y", 6)])
        .watch(&[line("MODIFIED", &job("x", 11)), line("ERROR", &expired)])
        .list(30, &[job("x", 11), job("z", 25)])
        .watch(&[line("DELETED", &job("x", 31))]);
    let seen = follow(&script, 8).await;
    assert_eq!(seen, ["+x@5", "+y@6", "synced", "+x@11", "-y@30", "+z@25", "synced", "-x@31*"]);
    assert_eq!(script.asked()[2], "/apis/batch/v1/jobs?limit=500");
}

#[tokio::test]
async fn a_watch_that_ends_is_resumed_at_the_last_version_bookmarks_included() {
    let bookmark = json!({"metadata": {"resourceVersion": "40"}});
    let script = Script::default()
        .list(10, &[])
        .watch(&[line("ADDED", &job("x", 12)), line("BOOKMARK", &bookmark)])
        .watch(&[line("ADDED", &job("x", 12)), line("ADDED", &job("y", 41))]);
    assert_eq!(follow(&script, 3).await, ["synced", "+x@12", "+y@41"]);
    let watch = |version: u64| {
        format!("/apis/batch/v1/jobs?watch=1&resourceVersion={version}&allowWatchBookmarks=true")
    };
    let asked = script.asked();
    assert_eq!(asked[..3], ["/apis/batch/v1/jobs?limit=500".to_owned(), watch(10), watch(40)]);
}

#[tokio::test]
async fn listings_come_in_pages_and_failures_are_retried() {
    let token = "to/ken=";
    let first = json!({"metadata": {"resourceVersion": "10", "continue": token}, "items": [job("x", 5)]});
    let script = Script::default()
        .then(StatusCode::SERVICE_UNAVAILABLE, "{}")
        .then(StatusCode::OK, first.to_string())
        .list(10, &[job("y", 6)])
        .watch(&[]);
    assert_eq!(follow(&script, 3).await, ["+x@5", "+y@6", "synced"]);
    assert_eq!(script.asked()[2], "/apis/batch/v1/jobs?limit=500&continue=to%2Fken%3D");
}

#[tokio::test]
async fn a_line_that_is_cut_off_counts_as_not_sent() {
    let whole = line("ADDED", &job("x", 12)).to_string();
    let script = Script::default()
        .list(10, &[])
        .then(StatusCode::OK, format!("{whole}\n{}", &whole[..whole.len() / 2]))
        .watch(&[line("ADDED", &job("y", 13))]);
    assert_eq!(follow(&script, 3).await, ["synced", "+x@12", "+y@13"]);
}
