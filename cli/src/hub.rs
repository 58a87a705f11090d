//! The hub's API server, with the user's rights.

use fairlead_api::labels;
use http::header::{HeaderValue, USER_AGENT};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Config, Resource};

use crate::args::Connection;
use crate::failure::{Exit, Failure};

/// A connection to the hub.
#[derive(Clone)]
pub(crate) struct Hub {
    /// The client.
    pub(crate) client: Client,
    /// The namespace that the user means.
    pub(crate) namespace: String,
}

impl Hub {
    /// Reads the kubeconfig; connects when the first request is made.
    pub(crate) async fn connect(connection: &Connection) -> Result<Self, Failure> {
        let mut config = config(connection).await?;
        config.headers.push((USER_AGENT, HeaderValue::from_static(labels::CLI_USER_AGENT)));
        if connection.as_user.is_some() {
            config.auth_info.impersonate.clone_from(&connection.as_user);
            config.auth_info.impersonate_groups = Some(connection.as_groups.clone());
        }
        let namespace = connection.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        Ok(Self { client: Client::try_from(config)?, namespace })
    }

    /// Objects of a cluster-scoped kind, kept whole: fields that this version does not know are shown too.
    pub(crate) fn all<K: Resource<DynamicType = ()>>(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &ApiResource::erase::<K>(&()))
    }

    /// Objects of a namespaced kind in the user's namespace.
    pub(crate) fn here<K: Resource<DynamicType = ()>>(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &ApiResource::erase::<K>(&()))
    }
}

async fn config(connection: &Connection) -> Result<Config, Failure> {
    let options = KubeConfigOptions { context: connection.context.clone(), ..KubeConfigOptions::default() };
    if let Some(path) = &connection.kubeconfig {
        let file = Kubeconfig::read_from(path)?;
        return Ok(Config::from_custom_kubeconfig(file, &options).await?);
    }
    if connection.context.is_some() {
        return Ok(Config::from_kubeconfig(&options).await?);
    }
    Ok(Config::infer().await?)
}

/// Lists the objects, or only those of these names. A name that does not exist is an error, as for kubectl.
pub(crate) async fn pick(api: &Api<DynamicObject>, names: &[String]) -> Result<Vec<DynamicObject>, Failure> {
    if names.is_empty() {
        return Ok(api.list(&kube::api::ListParams::default()).await.map_err(explain_missing_kind)?.items);
    }
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        found.push(api.get(name).await.map_err(explain_missing_kind)?);
    }
    Ok(found)
}

/// A server that does not know the kind answers 404 without naming an object: then this is no hub.
pub(crate) fn explain_missing_kind(error: kube::Error) -> Failure {
    let no_such_kind = |status: &kube::core::Status| {
        status.code == 404 && status.details.as_ref().is_none_or(|details| details.name.is_empty())
    };
    match &error {
        kube::Error::Api(status) if no_such_kind(status) => {
            let message = "this API server does not know Fairlead's kinds; is the context the hub's?";
            Failure::new(Exit::NotFound, message)
        }
        _ => error.into(),
    }
}
