//! A way into a cluster: a kubeconfig file, and a client made from it.

use std::{
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use super::authority::Pair;

/// A kubeconfig of one identity.
#[derive(Debug, Clone)]
pub struct Access {
    path: PathBuf,
    text: String,
}

/// How an identity is proven.
pub(super) enum Credential {
    Certificate(Pair),
    Token(String),
}

/// Where an API server is, and whom to trust there.
pub(super) struct Server<'a> {
    pub(super) cluster: &'a str,
    pub(super) url: &'a str,
    pub(super) authority: &'a str,
}

impl Access {
    /// Writes a kubeconfig that only this user may read.
    pub(super) fn write(
        path: PathBuf,
        server: &Server<'_>,
        user: &str,
        credential: Credential,
    ) -> Result<Self> {
        let text = serde_yaml::to_string(&kubeconfig(server, user, credential))?;
        write_private(&path, &text)?;
        Ok(Self { path, text })
    }

    /// The kubeconfig file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The kubeconfig as text (YAML).
    pub fn kubeconfig(&self) -> &str {
        &self.text
    }

    /// A client with this identity; audit logs name it `fairlead-rig`.
    pub async fn client(&self) -> Result<Client> {
        let mut config =
            Config::from_custom_kubeconfig(Kubeconfig::from_yaml(&self.text)?, &KubeConfigOptions::default())
                .await
                .with_context(|| format!("read {}", self.path.display()))?;
        config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static("fairlead-rig")));
        Ok(Client::try_from(config)?)
    }
}

fn kubeconfig(server: &Server<'_>, user: &str, credential: Credential) -> Value {
    let encoded = |pem: &str| BASE64_STANDARD.encode(pem);
    let credential = match credential {
        Credential::Certificate(pair) => json!({
            "client-certificate-data": encoded(&pair.certificate),
            "client-key-data": encoded(&pair.key),
        }),
        Credential::Token(token) => json!({ "token": token }),
    };
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": server.cluster,
        "contexts": [{"name": server.cluster, "context": {"cluster": server.cluster, "user": user}}],
        "clusters": [{
            "name": server.cluster,
            "cluster": {"server": server.url, "certificate-authority-data": encoded(server.authority)},
        }],
        "users": [{"name": user, "user": credential}],
    })
}

/// Writes a file that only its owner may read.
pub(super) fn write_private(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    }
    fs::OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("write {}", path.display()))
}
