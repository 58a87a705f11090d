//! `fairlead-hub run`, in order: client, checks, leadership, CA, brain, watches, gateway.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use fairlead_api::labels::HUB_USER_AGENT;
use fairlead_controller::brain::{Brain, Input};
use fairlead_controller::ports::Kind;
use fairlead_controller::shell::{self, Asker, KubeStore, Lead, Pump};
use fairlead_gateway::enrol::Enrolment;
use fairlead_gateway::spokes::SpokeTable;
use fairlead_gateway::{Front, Registry, authority};
use fairlead_link::server::{ServerTls, serve};
use fairlead_model::{Leadership, ObjectKey};
use fairlead_pki::tls::{CertificateSlot, GatewayTrust};
use fairlead_pki::{Ca, DenyList, SystemTime, TrustDomain};
use fairlead_runtime::client::{self, ClientSettings};
use fairlead_runtime::health::{self, Readiness};
use fairlead_runtime::lease::Tenure;
use fairlead_runtime::store::Store;
use fairlead_runtime::{Supervisor, stop_signal, telemetry};
use fairlead_serving::metrics::Metrics;
use fairlead_session::{HubConfig, Versions};
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::args::RunArgs;
use crate::keeper::Keeper;
use crate::serving;
use crate::settings::Settings;

/// The lease, in the hub's namespace.
const LEASE: &str = "fairlead-hub";
/// The name space of spokes' identities.
const TRUST_DOMAIN: &str = "fairlead.dev";
/// How long tasks may take to end.
const GRACE: Duration = Duration::from_secs(15);
/// Of how many files the records of decisions are.
const PIECES: u64 = 8;
/// Readiness conditions besides the lists.
const LEADERSHIP: &str = "leadership";
const GATEWAY: &str = "the gateway";

/// Runs the hub until it is told to stop or loses its leadership.
pub(crate) async fn run(args: RunArgs) -> anyhow::Result<()> {
    telemetry::init(args.log_format);
    let settings = Settings::read(args)?;
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        anyhow::bail!("another TLS provider was installed first");
    }
    let mut supervisor = Supervisor::new();
    let readiness = readiness();
    if let Some(address) = settings.health {
        let listener = TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))?;
        supervisor.spawn("health", health::serve(listener, readiness.clone(), supervisor.draining()));
    }

    let client = connect(&settings).await?;
    shell::preflight(client.clone()).await?;
    let key = ObjectKey::new(settings.namespace.as_str(), LEASE);
    let own = connect(&settings).await?;
    let stop = supervisor.draining();
    let led = tokio::select! {
        led = shell::lead(own, key, &settings.args.identity, &stop) => led?,
        signal = stop_signal() => return Ok(signal?),
    };
    let Some(Lead { leadership, claim }) = led else { return Ok(()) };
    readiness.meet(LEADERSHIP);

    let tenure = claim.tenure();
    let (keeper, watchdog) = Keeper::start(claim);
    supervisor.spawn("leadership", watchdog.watch(supervisor.draining()));
    let hub = Hub { settings, client, leadership, tenure, readiness };
    let started = hub.start(&mut supervisor).await;
    let ended = match started {
        Ok(()) => supervisor.run(GRACE).await.map_err(anyhow::Error::from),
        Err(why) => Err(why),
    };
    keeper.release().await;
    ended
}

fn readiness() -> Readiness {
    let lists: Vec<String> = Kind::WATCHED.into_iter().map(shell::readiness_name).collect();
    Readiness::waiting_for(lists.iter().map(String::as_str).chain([LEADERSHIP, GATEWAY]))
}

async fn connect(settings: &Settings) -> anyhow::Result<Client> {
    let client = ClientSettings {
        kubeconfig: settings.args.kubeconfig.clone(),
        context: settings.args.context.clone(),
        user_agent: HUB_USER_AGENT.to_owned(),
    };
    client::connect(&client).await.context("connect to the hub's API server")
}

/// What the leader's parts are made of.
struct Hub {
    settings: Settings,
    client: Client,
    leadership: Leadership,
    tenure: Tenure,
    readiness: Readiness,
}

impl Hub {
    async fn start(&self, supervisor: &mut Supervisor) -> anyhow::Result<()> {
        let store = Store::new(self.client.clone());
        let ca = Arc::new(authority::load_or_create(&store, &self.settings.namespace).await?);
        let (sender, inbox) = shell::inbox();
        let (spokes, tender) = SpokeTable::new(self.session_config(), sender.clone());
        let draining = supervisor.draining();
        supervisor.spawn("spokes", tender.run(draining));
        self.start_watches(supervisor, &sender);
        let metrics = serving::measure(&self.settings)?;
        let brain = self.start_brain(supervisor, (sender, inbox), Arc::clone(&spokes), Arc::clone(&metrics));
        serving::start(&self.settings, supervisor, &store, (brain, metrics)).await?;
        self.start_gateway(supervisor, (store, ca), spokes).await
    }

    fn session_config(&self) -> HubConfig {
        let versions = Versions { fairlead: env!("CARGO_PKG_VERSION").into(), ..Versions::default() };
        HubConfig::new(self.leadership.clone(), versions)
    }

    fn start_watches(&self, supervisor: &mut Supervisor, inbox: &mpsc::Sender<Input>) {
        for kind in Kind::WATCHED {
            let watching = shell::watch(self.client.clone(), kind, inbox.clone(), supervisor.draining());
            supervisor.spawn(format!("watch of {}", shell::resource(kind)), async move {
                watching.await;
                Ok(())
            });
        }
    }

    fn start_brain(
        &self,
        supervisor: &mut Supervisor,
        inbox: (mpsc::Sender<Input>, shell::Inbox),
        spokes: Arc<SpokeTable>,
        metrics: Arc<Metrics>,
    ) -> Asker<Brain> {
        let mut config = self.settings.brain(self.leadership.clone());
        let (asker, questions) = shell::questions();
        let store = Arc::new(KubeStore::new(self.client.clone(), self.tenure.clone()));
        let records = self.records();
        config.record = records.as_ref().map(|_| self.settings.args.replay_bytes / PIECES);
        let pump = Pump::new(Brain::new(config), inbox, store, spokes, self.readiness.clone());
        let pump = pump.answering(questions).measured_by(metrics).recording(records);
        let draining = supervisor.draining();
        supervisor.spawn("brain", async move { Ok(pump.run(draining).await?) });
        asker
    }

    /// Where decisions are recorded. A folder that cannot be used is no reason not to decide.
    fn records(&self) -> Option<shell::Records> {
        let folder = self.settings.args.replay_dir.as_deref()?;
        match shell::Ring::open(folder, self.settings.args.replay_bytes) {
            Ok(ring) => Some(shell::Records::start(ring)),
            Err(why) => {
                warn!("decisions are not recorded: {}: {why}", folder.display());
                None
            }
        }
    }

    async fn start_gateway(
        &self,
        supervisor: &mut Supervisor,
        (store, ca): (Store, Arc<Ca>),
        spokes: Arc<SpokeTable>,
    ) -> anyhow::Result<()> {
        let trust_domain: TrustDomain = TRUST_DOMAIN.parse()?;
        let names = vec![self.settings.advertise.host.clone()];
        let slot = authority::server_certificate(&ca, &names)?;
        let deny = Arc::new(DenyList::default());
        let registry = Arc::new(Registry::new(Arc::clone(&deny)));
        let draining = supervisor.draining();
        let following =
            Arc::clone(&registry).follow(self.client.clone(), Arc::clone(&spokes), draining.clone());
        supervisor.spawn("registry", following);
        let renewing = authority::renew_server(Arc::clone(&ca), names, Arc::clone(&slot), draining.clone());
        supervisor.spawn("certificate", renewing);

        let namespace = &self.settings.namespace;
        let enrolment = Enrolment::new(store.clone(), namespace, Arc::clone(&ca), trust_domain.clone());
        let front = Front::new(store.clone(), enrolment, registry, spokes, self.leadership.incarnation);
        let tls = tls(&ca, trust_domain, slot, deny)?;
        let listen = self.settings.listen;
        let listener = TcpListener::bind(listen).await.with_context(|| format!("listen on {listen}"))?;
        let serving = serve(listener, tls, Arc::new(front), draining);
        supervisor.spawn("gateway", async move {
            serving.await;
            Ok(())
        });
        fairlead_gateway::publish(&store, namespace, &self.settings.advertise.address, &ca.pin()).await?;
        info!(%listen, advertise = self.settings.advertise.address, pin = %ca.pin(), "listening for spokes");
        self.readiness.meet(GATEWAY);
        Ok(())
    }
}

fn tls(
    ca: &Ca,
    trust_domain: TrustDomain,
    certificate: Arc<CertificateSlot>,
    deny: Arc<DenyList>,
) -> anyhow::Result<ServerTls> {
    let trust = GatewayTrust {
        ca: ca.certificate().clone(),
        trust_domain,
        certificate,
        deny,
        time: Arc::new(SystemTime),
    };
    Ok(ServerTls::new(&trust)?)
}
