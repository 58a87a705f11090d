//! The API server's front proxy: it passes users' requests on and says in headers who they are. It is known by its client
//! certificate, and what a genuine one looks like stands in a ConfigMap that the API server keeps.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::http::HeaderMap;
use fairlead_model::ObjectKey;
use fairlead_pki::tls::provider;
use fairlead_runtime::store::{Call, Op, Options, Outcome, Store};
use fairlead_runtime::{Resource, TaskError};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, UnixTime};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::auth::Caller;

const CONFIG_MAPS: Resource = Resource::new("", "v1", "configmaps", true);
/// How often the ConfigMap is read.
const EVERY: Duration = Duration::from_secs(60);
/// The same while it could not be read yet.
const SOON: Duration = Duration::from_secs(2);

/// How a front proxy shows who it is, and in which headers it says who the user is.
pub struct Proxy {
    verifier: Arc<dyn ClientCertVerifier>,
    /// The ConfigMap's data that this was made from.
    data: Value,
    names: Vec<String>,
    user: Vec<String>,
    group: Vec<String>,
    extra: Vec<String>,
}

/// The front proxy as known now. Clones are the same.
#[derive(Clone, Default)]
pub struct FrontProxy {
    current: Arc<RwLock<Option<Arc<Proxy>>>>,
}

/// The ConfigMap does not say what is needed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ConfigMap kube-system/extension-apiserver-authentication: {0}")]
pub struct Unusable(String);

impl Proxy {
    /// Reads the ConfigMap's data.
    ///
    /// # Errors
    ///
    /// [`Unusable`] when the API server has no front proxy, or a value is malformed.
    pub fn of(data: &Value) -> Result<Self, Unusable> {
        let text = |key: &str| data.get(key).and_then(Value::as_str);
        let list = |key: &str| -> Result<Vec<String>, Unusable> {
            let text = text(key).unwrap_or("[]");
            serde_json::from_str(text).map_err(|why| Unusable(format!("{key} is not a list of texts: {why}")))
        };
        let key = "requestheader-client-ca-file";
        let pem = text(key)
            .ok_or_else(|| Unusable(format!("{key} is missing: the API server has no front proxy")))?;
        let wrong = |why: &dyn fmt::Display| Unusable(format!("{key}: {why}"));
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|why| wrong(&why))?;
            roots.add(certificate).map_err(|why| wrong(&why))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|why| wrong(&why))?;
        let or = |list: Vec<String>, usual: &str| if list.is_empty() { vec![usual.to_owned()] } else { list };
        Ok(Self {
            verifier,
            data: data.clone(),
            names: list("requestheader-allowed-names")?,
            user: or(list("requestheader-username-headers")?, "X-Remote-User"),
            group: or(list("requestheader-group-headers")?, "X-Remote-Group"),
            extra: or(list("requestheader-extra-headers-prefix")?, "X-Remote-Extra-"),
        })
    }

    /// Whom a front proxy with this (verified) certificate speaks for; nobody when its name is not allowed or it names
    /// no user.
    fn caller(&self, leaf: &CertificateDer<'_>, headers: &HeaderMap) -> Option<Caller> {
        let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
        let name = certificate.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
        if !self.names.is_empty()
            && !name.is_some_and(|name| self.names.iter().any(|allowed| allowed == name))
        {
            return None;
        }
        let values = |name: &str| -> Vec<String> {
            headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
        };
        let user =
            self.user.iter().find_map(|name| values(name).into_iter().find(|user| !user.is_empty()))?;
        let mut caller = Caller { user, ..Caller::default() };
        caller.groups = self.group.iter().flat_map(|name| values(name)).collect();
        for name in headers.keys() {
            let rest = self.extra.iter().find_map(|prefix| {
                name.as_str()
                    .strip_prefix(prefix.to_ascii_lowercase().as_str())
                    .filter(|rest| !rest.is_empty())
            });
            if let Some(rest) = rest {
                caller.extra.entry(rest.to_owned()).or_default().extend(values(name.as_str()));
            }
        }
        Some(caller)
    }
}

impl FrontProxy {
    /// This one from now on.
    pub fn set(&self, proxy: Proxy) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(proxy));
    }

    /// Whom a request is made for: the proxy's certificate is `leaf`, as the handshake has verified it.
    pub fn caller(&self, leaf: Option<&CertificateDer<'_>>, headers: &HeaderMap) -> Option<Caller> {
        self.get()?.caller(leaf?, headers)
    }

    fn get(&self) -> Option<Arc<Proxy>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the ConfigMap now and then until cancelled.
    ///
    /// # Errors
    ///
    /// None: what cannot be read is said in the log, and what was known stays.
    pub async fn follow(self, store: Store, cancel: CancellationToken) -> Result<(), TaskError> {
        let mut said = String::new();
        loop {
            let read = read(&store).await.and_then(|data| match self.get() {
                Some(known) if known.data == data => Ok(None),
                _ => Proxy::of(&data).map(Some),
            });
            let pause = match read {
                Ok(new) => {
                    if let Some(proxy) = new {
                        info!(names = ?proxy.names, "the API server's front proxy is known");
                        self.set(proxy);
                    }
                    EVERY
                }
                Err(why) => {
                    let why = why.to_string();
                    if why != said {
                        warn!("the visibility API answers nobody: {why}");
                    }
                    said = why;
                    if self.get().is_some() { EVERY } else { SOON }
                }
            };
            tokio::select! {
                () = cancel.cancelled() => return Ok(()),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

async fn read(store: &Store) -> Result<Value, Unusable> {
    let key = ObjectKey::new("kube-system", "extension-apiserver-authentication");
    let options = Options::default();
    let call = Call { resource: &CONFIG_MAPS, key: &key, op: &Op::Get, options: &options };
    match store.execute(&call).await {
        Outcome::Done(map) => Ok(map.json.get("data").cloned().unwrap_or_default()),
        other => Err(Unusable(format!("cannot be read: {other:?}"))),
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("names", &self.names).finish_non_exhaustive()
    }
}

impl fmt::Debug for FrontProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontProxy").field("known", &self.get().is_some()).finish()
    }
}

/// Certificates are asked for, not demanded: who shows none is told so in HTTP. One that is shown must be the proxy's.
impl ClientCertVerifier for FrontProxy {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        match self.get() {
            Some(proxy) => proxy.verifier.verify_client_cert(leaf, intermediates, now),
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
