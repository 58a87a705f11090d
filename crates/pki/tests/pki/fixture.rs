//! A hub and a spoke with a clock that only moves when told, and handshakes without sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fairlead_pki::tls::{CertificateSlot, GatewayTls, GatewayTrust, Lane, session_client};
use fairlead_pki::{
    Ca, DenyList, SPOKE_CERTIFICATE_LIFE, SpokeIdentity, SpokeKey, TrustDomain, UnixTime, VerifiedCsr,
    VerifiedPeer,
};
use rustls::server::Acceptor;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, ClientConnection, ConnectionCommon, ServerConfig, ServerConnection, SideData};
use rustls_pki_types::ServerName;

pub(crate) const NOW: u64 = 1_800_000_000;
pub(crate) const HOUR: u64 = 3600;
pub(crate) const YEAR: Duration = Duration::from_hours(365 * 24);
pub(crate) const UID_A: &str = "0c9f4c1e-52d8-4a44-8f3e-2f6f1c1a7f10";
pub(crate) const UID_B: &str = "7d1b9e52-0f4b-4d59-9f51-6a8f1d2c3b4a";

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

pub(crate) fn identity(uid: &str) -> SpokeIdentity {
    SpokeIdentity::issue(domain(), uid.parse().unwrap())
}

pub(crate) struct Hub {
    pub(crate) ca: Ca,
    pub(crate) clock: Arc<Clock>,
    pub(crate) deny: Arc<DenyList>,
    pub(crate) slot: Arc<CertificateSlot>,
    pub(crate) tls: GatewayTls,
}

impl Hub {
    pub(crate) fn new() -> Self {
        let ca = Ca::generate("Fairlead test CA", at(NOW), YEAR).unwrap();
        let names = ["hub.test".to_owned(), "127.0.0.1".to_owned()];
        let certificate = ca.issue_server(&names, at(NOW), YEAR).unwrap();
        let slot = Arc::new(CertificateSlot::of_server(certificate).unwrap());
        let clock = Arc::new(Clock(AtomicU64::new(NOW)));
        let deny = Arc::new(DenyList::default());
        let trust = GatewayTrust {
            ca: ca.certificate().clone(),
            trust_domain: domain(),
            certificate: Arc::clone(&slot),
            deny: Arc::clone(&deny),
            time: Arc::<Clock>::clone(&clock),
        };
        let tls = GatewayTls::new(&trust).unwrap();
        Self { ca, clock, deny, slot, tls }
    }

    /// A slot with a fresh key and a certificate for it.
    pub(crate) fn spoke(&self, uid: &str) -> (SpokeKey, Arc<CertificateSlot>) {
        let key = SpokeKey::generate().unwrap();
        let csr = VerifiedCsr::from_der(&key.signing_request().unwrap()).unwrap();
        let issued = self.ca.issue_spoke(&csr, &identity(uid), at(NOW), SPOKE_CERTIFICATE_LIFE).unwrap();
        let slot = Arc::new(CertificateSlot::of_spoke(&issued.pem, &key).unwrap());
        (key, slot)
    }

    pub(crate) fn session(&self, slot: Arc<CertificateSlot>) -> Arc<ClientConfig> {
        session_client(self.ca.certificate_pem(), slot, Arc::<Clock>::clone(&self.clock)).unwrap()
    }

    /// Connects with `client`; the server's settings are chosen from the hello, as the gateway does.
    pub(crate) fn connect(&self, client: Arc<ClientConfig>) -> Handshake {
        connect(client, "hub.test", |hello| self.tls.for_hello(&hello))
    }
}

/// How a handshake ended on either side.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) client: Result<(), rustls::Error>,
    pub(crate) server: Result<ServerConnection, rustls::Error>,
    pub(crate) lane: Option<Lane>,
    /// Whether the server sent any session ticket.
    pub(crate) tickets: u32,
}

impl Handshake {
    pub(crate) fn peer(self) -> VerifiedPeer {
        self.client.unwrap();
        VerifiedPeer::of(&self.server.unwrap(), &domain()).unwrap()
    }

    pub(crate) fn server_error(self) -> rustls::Error {
        self.server.expect_err("the server must refuse")
    }
}

pub(crate) fn connect(
    client: Arc<ClientConfig>,
    name: &'static str,
    choose: impl FnOnce(rustls::server::ClientHello<'_>) -> (Lane, Arc<ServerConfig>),
) -> Handshake {
    let mut client = ClientConnection::new(client, ServerName::try_from(name).unwrap()).unwrap();
    let mut hello = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut hello).unwrap();
    }
    let mut acceptor = Acceptor::default();
    acceptor.read_tls(&mut hello.as_slice()).unwrap();
    let accepted = match acceptor.accept() {
        Ok(accepted) => accepted.expect("the whole hello was read"),
        Err((error, mut alert)) => {
            let mut bytes = Vec::new();
            alert.write_all(&mut bytes).unwrap();
            return Handshake {
                client: feed(&mut client, &bytes),
                server: Err(error),
                lane: None,
                tickets: 0,
            };
        }
    };
    let (lane, config) = choose(accepted.client_hello());
    match accepted.into_connection(config) {
        Ok(server) => drive(client, server, lane),
        Err((error, mut alert)) => {
            let mut bytes = Vec::new();
            alert.write_all(&mut bytes).unwrap();
            Handshake { client: feed(&mut client, &bytes), server: Err(error), lane: Some(lane), tickets: 0 }
        }
    }
}

fn drive(mut client: ClientConnection, mut server: ServerConnection, lane: Lane) -> Handshake {
    let (mut for_client, mut for_server) = (Ok(()), Ok(()));
    loop {
        let down = drain(&mut server);
        if !down.is_empty() && for_client.is_ok() {
            for_client = feed(&mut client, &down);
        }
        let up = drain(&mut client);
        if !up.is_empty() && for_server.is_ok() {
            for_server = feed(&mut server, &up);
        }
        if down.is_empty() && up.is_empty() {
            break;
        }
    }
    let tickets = client.tls13_tickets_received();
    Handshake { client: for_client, server: for_server.map(|()| server), lane: Some(lane), tickets }
}

fn drain<D: SideData>(side: &mut ConnectionCommon<D>) -> Vec<u8> {
    let mut bytes = Vec::new();
    while side.wants_write() {
        side.write_tls(&mut bytes).unwrap();
    }
    bytes
}

fn feed<D: SideData>(side: &mut ConnectionCommon<D>, bytes: &[u8]) -> Result<(), rustls::Error> {
    let mut rest = bytes;
    while !rest.is_empty() {
        side.read_tls(&mut rest).map_err(|why| rustls::Error::General(why.to_string()))?;
        side.process_new_packets()?;
    }
    Ok(())
}
