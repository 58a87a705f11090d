//! What is served to operators: metrics and the visibility API, with their certificate; and the file that is followed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use fairlead_controller::brain::Brain;
use fairlead_controller::shell::Asker;
use fairlead_gateway::authority;
use fairlead_model::ObjectKey;
use fairlead_pki::tls::CertificateSlot;
use fairlead_runtime::store::Store;
use fairlead_runtime::{Supervisor, TaskError};
use fairlead_serving::auth::ApiServer;
use fairlead_serving::certificates::Folder;
use fairlead_serving::front_proxy::FrontProxy;
use fairlead_serving::https::{self, server_config};
use fairlead_serving::metrics::{self, Build, Metrics, MetricsServer};
use fairlead_serving::visibility::{self, Visibility, api_service};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::settings::{Settings, Source, shown};

/// The Secret with the CA of what is served to operators. Spokes' certificates are none of its business.
const SERVING_CA: &str = "fairlead-serving-ca";
/// How often the configuration file is looked at. The kubelet needs up to a minute to show a change.
const LOOK: Duration = Duration::from_secs(10);

/// This build.
const BUILD: Build = Build {
    version: concat!("v", env!("CARGO_PKG_VERSION")),
    commit: match option_env!("FAIRLEAD_COMMIT") {
        Some(commit) => commit,
        None => "",
    },
    date: match option_env!("FAIRLEAD_BUILD_DATE") {
        Some(date) => date,
        None => "",
    },
};

/// Starts to measure.
pub(crate) fn measure(settings: &Settings) -> anyhow::Result<Arc<Metrics>> {
    Ok(Arc::new(Metrics::new(BUILD, shown(&settings.configuration))?))
}

/// Serves metrics and the visibility API of a leader, where they are wanted.
pub(crate) async fn start(
    settings: &Settings,
    supervisor: &mut Supervisor,
    store: &Store,
    (brain, metrics): (Asker<Brain>, Arc<Metrics>),
) -> anyhow::Result<()> {
    if let Some(source) = settings.source() {
        let following =
            follow(source, settings.configuration.clone(), Arc::clone(&metrics), supervisor.draining());
        supervisor.spawn("configuration", following);
    }
    if settings.metrics.is_none() && settings.visibility.is_none() {
        return Ok(());
    }
    let (slot, ca) = certificate(settings, supervisor, store).await?;
    let reviews = ApiServer(store.clone());
    if let Some(address) = settings.metrics {
        let listener = TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))?;
        let tls = server_config(&settings.tls(), Arc::clone(&slot), None)?;
        let router =
            metrics::router(MetricsServer { metrics, brain: Some(brain.clone()), reviews: reviews.clone() });
        supervisor.spawn("metrics", https::serve(listener, tls, router, supervisor.draining()));
        info!(%address, "serving metrics");
    }
    if let Some(address) = settings.visibility {
        let listener = TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))?;
        let proxy = FrontProxy::default();
        supervisor.spawn("front proxy", proxy.clone().follow(store.clone(), supervisor.draining()));
        let tls = server_config(&settings.tls(), slot, Some(Arc::new(proxy.clone())))?;
        let router = visibility::router(Visibility { lines: brain, reviews, proxy });
        supervisor.spawn("visibility", https::serve(listener, tls, router, supervisor.draining()));
        if let Some(ca) = ca {
            supervisor.spawn("API service", api_service::keep(store.clone(), ca, supervisor.draining()));
        }
        info!(%address, "serving the visibility API");
    }
    Ok(())
}

/// The certificate, from a folder or from a CA of our own; and that CA, which the API server must be told.
async fn certificate(
    settings: &Settings,
    supervisor: &mut Supervisor,
    store: &Store,
) -> anyhow::Result<(Arc<CertificateSlot>, Option<String>)> {
    if let Some(folder) = settings.configuration.certificates_from() {
        let folder = Folder::open(Path::new(folder)).await?;
        let slot = folder.slot();
        supervisor.spawn("certificate files", folder.follow(supervisor.draining()));
        return Ok((slot, None));
    }
    let key = ObjectKey::new(settings.namespace.as_str(), SERVING_CA);
    let ca = Arc::new(authority::load_or_create_at(store, &key, "Fairlead serving CA").await?);
    let names = names(settings);
    let slot = authority::server_certificate(&ca, &names)?;
    let renewing = authority::renew_server(Arc::clone(&ca), names, Arc::clone(&slot), supervisor.draining());
    supervisor.spawn("serving certificate", renewing);
    Ok((slot, Some(ca.certificate_pem().to_owned())))
}

/// The names under which the hub's Services are reached.
fn names(settings: &Settings) -> Vec<String> {
    let usual = ["fairlead-visibility", "fairlead-metrics"].map(str::to_owned);
    let services = usual.iter().chain(&settings.configuration.fairlead.services);
    let namespace = &settings.namespace;
    let mut names: Vec<String> = services
        .flat_map(|name| [format!("{name}.{namespace}.svc"), format!("{name}.{namespace}.svc.cluster.local")])
        .collect();
    names.push("localhost".to_owned());
    names
}

/// Follows the configuration file until cancelled: what may change at once does, and what may not is named.
async fn follow(
    source: Source,
    mut known: fairlead_config::Configuration,
    metrics: Arc<Metrics>,
    cancel: CancellationToken,
) -> Result<(), TaskError> {
    let mut wrong = String::new();
    loop {
        tokio::select! {
            () = cancel.cancelled() => return Ok(()),
            () = tokio::time::sleep(LOOK) => {}
        }
        let now = match source.read() {
            Ok(loaded) => loaded.configuration,
            Err(why) => {
                let why = format!("{why:#}");
                if why != wrong {
                    warn!("the configuration stays as it was: {why}");
                }
                wrong = why;
                continue;
            }
        };
        wrong.clear();
        for change in fairlead_config::changes(&known, &now) {
            if change.live {
                info!(key = change.key, "the configuration has changed");
            } else {
                warn!(key = change.key, "the configuration has changed: it takes effect at the next start");
            }
        }
        metrics.show(shown(&now));
        known = now;
    }
}
