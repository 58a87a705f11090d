//! A front proxy for tests.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls_pki_types::CertificateDer;
use serde_json::{Value, json};

use super::Proxy;

/// The CA of a front proxy.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A client certificate, and its key in PEM.
    pub(crate) fn client(&self, name: &str) -> (CertificateDer<'static>, String) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().der().clone(), key.serialize_pem())
    }

    /// The ConfigMap's data.
    pub(crate) fn data(&self, names: &[&str]) -> Value {
        json!({
            "requestheader-client-ca-file": self.0.pem(),
            "requestheader-allowed-names": json!(names).to_string(),
            "requestheader-username-headers": r#"["X-Remote-User"]"#,
            "requestheader-group-headers": r#"["X-Remote-Group"]"#,
            "requestheader-extra-headers-prefix": r#"["X-Remote-Extra-"]"#,
        })
    }
}

/// A front proxy whose certificates must have one of these names.
pub(crate) fn proxy(names: &[&str]) -> Proxy {
    Proxy::of(&Authority::new().data(names)).unwrap()
}

/// A certificate of this name. Whether it is the proxy's is for the handshake to say.
pub(crate) fn proxy_certificate(name: &str) -> CertificateDer<'static> {
    Authority::new().client(name).0
}
