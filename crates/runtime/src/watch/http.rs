//! The HTTP half of a watch: listing in pages, and the lines of a watch's body.

use std::time::Duration;

use ::http::Request;
use ::http::header::ACCEPT;
use futures::{AsyncBufRead, AsyncBufReadExt};
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

use super::{Target, version_of};
use crate::entropy;
use crate::object::{Malformed, Object};
use crate::resource::{BadName, encode};

/// How many objects a page holds.
const PAGE: u32 = 500;
/// How long the API server is to keep a watch open, before jitter.
const WATCH_SECONDS: u64 = 290;
/// How long a page, or the head of a watch's answer, may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest line that is read: larger than any object that etcd holds.
const LONGEST_LINE: usize = 16 << 20;
/// How objects, events and lists are asked for.
const JSON: &str = "application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// What exists, as of one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// The objects.
    pub objects: Vec<Object>,
    /// The version of the listing: the point to watch from.
    pub version: u64,
}

/// Why a listing or a watch failed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// 410: the API server no longer knows that point.
    #[error("the API server has forgotten this point")]
    Expired,
    /// The API server said no, or the connection failed.
    #[error("{0}")]
    Api(#[from] Box<kube::Error>),
    /// The connection broke while reading.
    #[error("the connection broke: {0}")]
    Broken(#[from] std::io::Error),
    /// No answer in time.
    #[error("no answer in time")]
    TimedOut,
    /// An ERROR event other than 410.
    #[error("the API server ended the watch: {0}")]
    Ended(String),
    /// The answer cannot be read.
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
}

impl WatchError {
    /// Whether nothing speaks against going on from the same point.
    pub(super) const fn resumable(&self) -> bool {
        matches!(self, Self::Api(_) | Self::Broken(_) | Self::TimedOut)
    }
}

impl From<kube::Error> for WatchError {
    fn from(why: kube::Error) -> Self {
        match why {
            kube::Error::Api(status) if status.code == 410 => Self::Expired,
            other => Self::Api(Box::new(other)),
        }
    }
}

impl From<BadName> for WatchError {
    fn from(why: BadName) -> Self {
        Self::Unreadable(why.to_string())
    }
}

impl From<Malformed> for WatchError {
    fn from(why: Malformed) -> Self {
        Self::Unreadable(why.to_string())
    }
}

#[derive(Deserialize)]
struct Page {
    metadata: Value,
    #[serde(default)]
    items: Option<Vec<Value>>,
}

/// Lists every object of the target, consistently: without a resource version, so that the API server answers
/// with nothing older than the moment of the call.
pub async fn list(client: &Client, target: &Target) -> Result<Listing, WatchError> {
    let mut listing = Listing::default();
    let mut token = String::new();
    let accept = if target.metadata_only { METADATA_LIST } else { JSON };
    loop {
        let mut query = format!("limit={PAGE}");
        if !token.is_empty() {
            query.push_str("&continue=");
            query.push_str(&encode(&token));
        }
        let page = page(client, request(target, &query, accept)?).await?;
        // Every page of one listing has the version of the first.
        listing.version = version_of(&page.metadata).ok_or(Malformed("resourceVersion"))?;
        for item in page.items.unwrap_or_default() {
            listing.objects.push(Object::from_json(item)?);
        }
        match page.metadata.get("continue").and_then(Value::as_str) {
            Some(next) if !next.is_empty() => next.clone_into(&mut token),
            Some(_) | None => return Ok(listing),
        }
    }
}

async fn page(client: &Client, request: Request<Vec<u8>>) -> Result<Page, WatchError> {
    let text = tokio::time::timeout(PATIENCE, client.request_text(request))
        .await
        .map_err(|_elapsed| WatchError::TimedOut)??;
    serde_json::from_str(&text).map_err(|why| WatchError::Unreadable(why.to_string()))
}

fn request(target: &Target, query: &str, accept: &str) -> Result<Request<Vec<u8>>, WatchError> {
    let mut uri = target.resource.collection(target.namespace.as_deref().unwrap_or_default())?;
    uri.push('?');
    uri.push_str(query);
    if let Some(selector) = &target.label_selector {
        uri.push_str("&labelSelector=");
        uri.push_str(&encode(selector));
    }
    Request::get(uri)
        .header(ACCEPT, accept)
        .body(Vec::new())
        .map_err(|why| WatchError::Unreadable(why.to_string()))
}

/// One line of a watch.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// ADDED or MODIFIED.
    Upsert(Object),
    /// DELETED, with the last state.
    Delete(Object),
    /// BOOKMARK: nothing happened up to this version.
    Bookmark(u64),
}

/// An open watch.
pub(super) struct Watching {
    body: Box<dyn AsyncBufRead + Send + Unpin>,
    buffer: Vec<u8>,
}

impl Watching {
    /// Opens a watch from `point` on.
    pub(super) async fn open(client: &Client, target: &Target, point: u64) -> Result<Self, WatchError> {
        let seconds = WATCH_SECONDS.saturating_add(entropy::below(60));
        let query =
            format!("watch=1&resourceVersion={point}&allowWatchBookmarks=true&timeoutSeconds={seconds}");
        let accept = if target.metadata_only { METADATA } else { JSON };
        let opening = client.request_stream(request(target, &query, accept)?);
        let body =
            tokio::time::timeout(PATIENCE, opening).await.map_err(|_elapsed| WatchError::TimedOut)??;
        Ok(Self { body: Box::new(Box::pin(body)), buffer: Vec::new() })
    }

    /// The next line; `None` when the API server has ended the watch. May be dropped and called again.
    pub(super) async fn next(&mut self) -> Result<Option<Line>, WatchError> {
        loop {
            let chunk = self.body.fill_buf().await?;
            if chunk.is_empty() {
                // A line cut off in the middle is sent again after resuming.
                return Ok(None);
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(chunk.len(), |at| at.saturating_add(1));
            self.buffer.extend_from_slice(chunk.get(..taken).unwrap_or_default());
            self.body.consume_unpin(taken);
            if self.buffer.len() > LONGEST_LINE {
                return Err(WatchError::Unreadable("a line is longer than any object".to_owned()));
            }
            if end.is_some() {
                let line = parse(&self.buffer);
                self.buffer.clear();
                return line.map(Some);
            }
        }
    }
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "type")]
    kind: String,
    object: Value,
}

fn parse(line: &[u8]) -> Result<Line, WatchError> {
    let envelope: Envelope =
        serde_json::from_slice(line).map_err(|why| WatchError::Unreadable(why.to_string()))?;
    match envelope.kind.as_str() {
        "ADDED" | "MODIFIED" => Ok(Line::Upsert(Object::from_json(envelope.object)?)),
        "DELETED" => Ok(Line::Delete(Object::from_json(envelope.object)?)),
        "BOOKMARK" => {
            let version = envelope.object.get("metadata").and_then(version_of);
            Ok(Line::Bookmark(version.ok_or(Malformed("resourceVersion"))?))
        }
        "ERROR" if envelope.object.get("code").and_then(Value::as_u64) == Some(410) => {
            Err(WatchError::Expired)
        }
        "ERROR" => {
            let message = envelope.object.get("message").and_then(Value::as_str).unwrap_or("no message");
            Err(WatchError::Ended(message.to_owned()))
        }
        other => Err(WatchError::Unreadable(format!("an event of type {other}"))),
    }
}
