//! A gateway on a loopback port, with a clock of its own, and spokes that dial it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fairlead_link::client::Dialer;
use fairlead_link::server::{Gateway, ServerTls, serve};
use fairlead_link::{EnrolRefusal, EnrolRequest, Enrolled, HubIo, SpokeIo};
use fairlead_model::Reason;
use fairlead_pki::tls::{CertificateSlot, GatewayTrust, session_client};
use fairlead_pki::{
    Ca, DenyList, SPOKE_CERTIFICATE_LIFE, SpokeIdentity, SpokeKey, TimeProvider, TrustDomain, UnixTime,
    VerifiedCsr, VerifiedPeer,
};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const NOW: u64 = 1_800_000_000;
pub(crate) const UID: &str = "0c9f4c1e-52d8-4a44-8f3e-2f6f1c1a7f10";

pub(crate) fn at(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

#[derive(Debug)]
pub(crate) struct Clock(AtomicU64);

impl Clock {
    pub(crate) fn set(&self, seconds: u64) {
        self.0.store(seconds, Ordering::SeqCst);
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(at(self.0.load(Ordering::SeqCst)))
    }
}

pub(crate) fn domain() -> TrustDomain {
    "fairlead.test".parse().unwrap()
}

/// A gateway that lets in whoever has the token "good" and hands sessions to the test.
pub(crate) struct Desk {
    ca_pem: String,
    pub(crate) asked: Mutex<Vec<EnrolRequest>>,
    sessions: mpsc::UnboundedSender<(VerifiedPeer, HubIo)>,
}

impl Gateway for Desk {
    async fn enrol(&self, request: EnrolRequest, _from: SocketAddr) -> Result<Enrolled, EnrolRefusal> {
        let good = request.token == "good";
        self.asked.lock().await.push(request);
        if !good {
            return Err(EnrolRefusal {
                reason: Reason::TokenUsed,
                detail: "used with another key".to_owned(),
            });
        }
        Ok(Enrolled {
            certificate_pem: "a certificate".to_owned(),
            ca_pem: self.ca_pem.clone(),
            cluster_uid: UID.to_owned(),
            expires: at(NOW + 86_400),
        })
    }

    async fn session(&self, peer: VerifiedPeer, io: HubIo) {
        self.sessions.send((peer, io)).ok();
    }
}

pub(crate) struct Hub {
    pub(crate) ca: Ca,
    pub(crate) clock: Arc<Clock>,
    pub(crate) deny: Arc<DenyList>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) stop: CancellationToken,
    pub(crate) address: String,
    trust: GatewayTrust,
    sessions: mpsc::UnboundedReceiver<(VerifiedPeer, HubIo)>,
}

impl Hub {
    /// A hub that does not serve yet, and its listener.
    pub(crate) async fn new() -> (Self, TcpListener) {
        let ca = Ca::generate("Fairlead test CA", at(NOW), Duration::from_hours(8760)).unwrap();
        let certificate =
            ca.issue_server(&["127.0.0.1".to_owned()], at(NOW), Duration::from_hours(8760)).unwrap();
        let clock = Arc::new(Clock(AtomicU64::new(NOW)));
        let deny = Arc::new(DenyList::default());
        let trust = GatewayTrust {
            ca: ca.certificate().clone(),
            trust_domain: domain(),
            certificate: Arc::new(CertificateSlot::of_server(certificate).unwrap()),
            deny: Arc::clone(&deny),
            time: Arc::<Clock>::clone(&clock),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, sessions) = mpsc::unbounded_channel();
        let ca_pem = ca.certificate_pem().to_owned();
        let desk = Arc::new(Desk { ca_pem, asked: Mutex::default(), sessions: sender });
        let stop = CancellationToken::new();
        (Self { ca, clock, deny, desk, stop, address, trust, sessions }, listener)
    }

    pub(crate) async fn serving() -> Self {
        let (hub, listener) = Self::new().await;
        drop(hub.serve(listener));
        hub
    }

    pub(crate) fn serve(&self, listener: TcpListener) -> JoinHandle<()> {
        let tls = ServerTls::new(&self.trust).unwrap();
        tokio::spawn(serve(listener, tls, Arc::clone(&self.desk), self.stop.clone()))
    }

    pub(crate) fn time(&self) -> Arc<dyn TimeProvider> {
        Arc::<Clock>::clone(&self.clock)
    }

    /// A fresh certificate of this hub's CA.
    pub(crate) fn certificate(&self) -> Arc<CertificateSlot> {
        let key = SpokeKey::generate().unwrap();
        let csr = VerifiedCsr::from_der(&key.signing_request().unwrap()).unwrap();
        let identity = SpokeIdentity::issue(domain(), UID.parse().unwrap());
        let issued = self.ca.issue_spoke(&csr, &identity, at(NOW), SPOKE_CERTIFICATE_LIFE).unwrap();
        Arc::new(CertificateSlot::of_spoke(&issued.pem, &key).unwrap())
    }

    /// Who trusts this hub and shows this certificate.
    pub(crate) fn dialer(&self, certificate: Arc<CertificateSlot>) -> Dialer {
        self.dialer_at(&self.address, certificate)
    }

    /// The same, who reaches the hub at another address.
    pub(crate) fn dialer_at(&self, address: &str, certificate: Arc<CertificateSlot>) -> Dialer {
        let tls = session_client(self.ca.certificate_pem(), certificate, self.time()).unwrap();
        Dialer::new(address, tls).unwrap()
    }

    /// A spoke of this hub.
    pub(crate) fn spoke(&self) -> Dialer {
        self.dialer(self.certificate())
    }

    /// The next session that the gateway got.
    pub(crate) async fn accepted(&mut self) -> (VerifiedPeer, HubIo) {
        self.sessions.recv().await.unwrap()
    }

    /// Both ends of a fresh session.
    pub(crate) async fn session(&mut self) -> (HubIo, SpokeIo) {
        let spoke = self.spoke().dial().await.unwrap();
        (self.accepted().await.1, spoke)
    }
}
