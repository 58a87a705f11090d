//! The agent around its machine: watches in, operations out, the line to the hub.
//!
//! One task, the `pump`, owns the machine. Everything else brings it input through one bounded inbox.

mod crash;
mod floor;
mod identity;
mod inbox;
mod lanes;
mod line;
mod pump;
mod store;
mod watches;

use std::sync::Arc;

use fairlead_link::client::{DialError, Dialer};
use fairlead_model::ObjectKey;
use fairlead_pki::tls::{CertificateSlot, session_client};
use fairlead_pki::{PkiError, SystemTime};
use fairlead_runtime::store::Store;
use fairlead_runtime::{Resource, Supervisor};
use fairlead_session::{SpokeConfig, SpokeSession, Versions};
use kube::Client;

pub use floor::FloorError;
pub use identity::{Identity, IdentityError, JoinError, JoinRequest, Stored, Vault, join};

use self::floor::Floors;
use self::pump::Pump;
use self::store::KubeStore;
use crate::core::{Core, CoreConfig};
use crate::machine::Machine;
use crate::ports::Kind;

/// Why the agent could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The floor cannot be read or written, so nothing may be obeyed.
    #[error("cannot keep the floor: {0}")]
    Floor(#[from] FloorError),
    /// The stored certificate, key or CA cannot be used.
    #[error("cannot use the stored identity: {0}")]
    Identity(#[from] PkiError),
    /// The stored address of the hub cannot be used.
    #[error(transparent)]
    Hub(#[from] DialError),
}

/// Starts the agent's tasks: one watch per kind, and the pump.
///
/// The boot counter is raised and durable before anything else happens.
pub async fn start(
    supervisor: &mut Supervisor,
    client: Client,
    namespace: &str,
    identity: &Identity,
) -> Result<(), StartError> {
    let store = Store::new(client.clone());
    let (floors, kept) = Floors::boot(store.clone(), namespace).await?;
    let dialer = dialer(identity)?;
    let core = Core::new(CoreConfig { floor: kept.floor.clone(), boot: kept.boot });
    let session = SpokeSession::new(SpokeConfig {
        versions: versions(&client).await,
        cluster_uid: cluster_uid(&store).await,
        ..SpokeConfig::new(kept.floor, kept.boot)
    });
    let (sender, inbox) = inbox::inbox();
    for kind in Kind::WATCHED {
        let (client, sender, stop) = (client.clone(), sender.clone(), supervisor.draining());
        supervisor.spawn(kind.name(), async move {
            watches::watch(client, kind, sender, stop).await;
            Ok(())
        });
    }
    let store = Arc::new(KubeStore::new(store));
    let pump = Pump::new(Machine::new(core, session), (sender, inbox), store, Arc::new(floors), dialer);
    let stop = supervisor.draining();
    supervisor.spawn("pump", async move { pump.run(stop).await.map_err(Into::into) });
    tracing::info!(hub = %identity.hub, cluster = %identity.cluster, boot = kept.boot, "agent started");
    Ok(())
}

fn dialer(identity: &Identity) -> Result<Dialer, StartError> {
    let slot = CertificateSlot::of_spoke(&identity.certificate_pem, &identity.key)?;
    let tls = session_client(&identity.ca_pem, Arc::new(slot), Arc::new(SystemTime))?;
    Ok(Dialer::new(&identity.hub, tls)?)
}

/// Versions for people to see; a cluster that does not say its own is not kept from working.
async fn versions(client: &Client) -> Versions {
    let kubernetes = match client.apiserver_version().await {
        Ok(info) => info.git_version.into(),
        Err(error) => {
            tracing::warn!(%error, "the cluster does not say its version");
            "".into()
        }
    };
    Versions { fairlead: env!("CARGO_PKG_VERSION").into(), kubernetes }
}

/// UID of the kube-system namespace: reported, never an identity.
async fn cluster_uid(store: &Store) -> Arc<str> {
    use fairlead_runtime::store::{Call, Op, Options, Outcome};
    const NAMESPACES: Resource = Resource::new("", "v1", "namespaces", false);
    let key = ObjectKey::new("", "kube-system");
    let options = Options::default();
    let call = Call { resource: &NAMESPACES, key: &key, op: &Op::GetMetadata, options: &options };
    match store.execute(&call).await {
        Outcome::Done(namespace) => namespace.uid.as_str().into(),
        _ => "".into(),
    }
}
