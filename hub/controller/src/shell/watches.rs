//! Watches into the inbox.

use fairlead_runtime::watch::{self, Target};
use kube::Client;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::kinds::resource;
use super::store::from_wire;
use crate::brain::Input;
use crate::ports::Kind;

/// Feeds every object of a kind to the brain until cancelled.
pub async fn watch(client: Client, kind: Kind, inbox: mpsc::Sender<Input>, cancel: CancellationToken) {
    watch::run(client, Target::all(resource(kind)), inbox, move |event| input(kind, event), cancel).await;
}

fn input(kind: Kind, event: watch::Event) -> Input {
    match event {
        watch::Event::Upsert(object) => Input::Object(from_wire(kind, object)),
        watch::Event::Gone { key, uid, version, .. } => Input::Gone { kind, key, uid, version },
        watch::Event::Synced => Input::Synced(kind),
    }
}

/// What readiness calls the first complete listing of a kind.
pub fn readiness_name(kind: Kind) -> String {
    format!("the list of {}", resource(kind))
}
