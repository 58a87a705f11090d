//! Clients of an API server.

use std::path::PathBuf;
use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

/// How much of a watch or a listing may be on its way before it is read, in bytes: a page of large objects.
const STREAM_WINDOW: u32 = 2 << 20;
/// The same for all streams of the connection together: one slow reader must not stop the others.
const CONNECTION_WINDOW: u32 = 32 << 20;

/// Which API server, and as whom.
#[derive(Clone, Debug, Default)]
pub struct ClientSettings {
    /// A kubeconfig file. Without one: `KUBECONFIG`, then `~/.kube/config`, then the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// The context in it; the current one when absent.
    pub context: Option<String>,
    /// The user agent, for example `fairlead-hub/0.1.0`. Audit logs count by it.
    pub user_agent: String,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The kubeconfig cannot be read or names no such context.
    #[error("cannot read the kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// There is neither a kubeconfig nor a service account.
    #[error("no cluster is configured: {0}")]
    Infer(#[from] Box<kube::config::InferConfigError>),
    /// The user agent is not a header value.
    #[error("the user agent is malformed: {0}")]
    UserAgent(#[from] http::header::InvalidHeaderValue),
    /// Certificates or credentials of the kubeconfig cannot be used.
    #[error("cannot use the cluster's credentials: {0}")]
    Credentials(#[from] Box<kube::Error>),
}

/// A client that retries nothing by itself and limits nothing: who may be retried is the caller's knowledge, and
/// how many calls run at once is bounded where they are made.
///
/// A dead connection is noticed within about half a minute, also under a silent watch.
pub async fn connect(settings: &ClientSettings) -> Result<Client, ClientError> {
    let mut config = load(settings).await?;
    config.headers.push((USER_AGENT, HeaderValue::from_str(&settings.user_agent)?));
    build(&config).map_err(|why| ClientError::Credentials(Box::new(why)))
}

async fn load(settings: &ClientSettings) -> Result<Config, ClientError> {
    let options = KubeConfigOptions { context: settings.context.clone(), ..KubeConfigOptions::default() };
    if let Some(path) = &settings.kubeconfig {
        let file = Kubeconfig::read_from(path)?;
        return Ok(Config::from_custom_kubeconfig(file, &options).await?);
    }
    if settings.context.is_some() {
        return Ok(Config::from_kubeconfig(&options).await?);
    }
    Config::infer().await.map_err(|why| ClientError::Infer(Box::new(why)))
}

/// Kube's own stack less its retries, which would repeat writes whose outcome is unknown, and over HTTP/2: one
/// connection carries every call and every watch, which costs both ends less than a pool, and pings tell a dead one.
fn build(config: &Config) -> Result<Client, kube::Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(Duration::from_secs(5)));
    let tls = config.rustls_client_config()?;
    let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http2();
    let http = hyper_util::client::legacy::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_only(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keep_alive_interval(Duration::from_secs(10))
        .http2_keep_alive_timeout(Duration::from_secs(10))
        .build::<_, Body>(connector.wrap_connector(tcp));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace.clone()))
}
