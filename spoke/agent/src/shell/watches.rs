//! Watches into the inbox.

use fairlead_api::labels;
use fairlead_runtime::watch::{self, Target};
use kube::Client;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::inbox::Arrival;
use super::store::{from_wire, resource};
use crate::core::Input;
use crate::ports::Kind;

/// Hands every object of a kind to the core until cancelled.
pub(super) async fn watch(client: Client, kind: Kind, inbox: mpsc::Sender<Arrival>, stop: CancellationToken) {
    let label_selector = match kind {
        Kind::Job => Some(labels::PLACEMENT.to_owned()),
        Kind::ForeignJob => Some(format!("!{}", labels::PLACEMENT)),
        _ => None,
    };
    let metadata_only = kind == Kind::ForeignJob;
    let target = Target { label_selector, metadata_only, ..Target::all(resource(kind)) };
    watch::run(client, target, inbox, move |event| Arrival::Input(input(kind, event)), stop).await;
}

fn input(kind: Kind, event: watch::Event) -> Input {
    match event {
        watch::Event::Upsert(object) => Input::Object(from_wire(kind, object)),
        watch::Event::Gone { key, uid, version, last } => {
            Input::Gone { kind, key, uid, version, last: last.map(|object| object.json) }
        }
        watch::Event::Synced => Input::Synced(kind),
    }
}
