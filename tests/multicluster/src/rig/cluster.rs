//! One cluster of a rig: its control plane, its identities, its audit log.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, Client, api::PostParams};

use super::{
    Shared,
    access::{Access, Credential, Server, write_private},
    authority::{self, Authority},
    flags,
    nodes::NodeSpec,
    ports,
};
use crate::{
    audit::AuditLog,
    binaries::Part,
    process::{Process, ProcessSpec},
    wait,
};

/// How long an API server may take to be ready: 4 s is usual, on a loaded machine several times that.
const READY_BOUND: Duration = Duration::from_secs(120);

/// A port found free can be taken before the API server binds it.
const ATTEMPTS: u32 = 3;

const STAGES: &str = include_str!("../../rig/kwok/stages.yaml");
const AUDIT_POLICY: &str = include_str!("../../rig/audit-policy.yaml");

/// How a cluster is set up.
#[derive(Debug, Clone, Default)]
pub struct ClusterOptions {
    /// Write an audit log (see `rig/audit-policy.yaml`). Costs the API server time: off in timed benches.
    pub audit: bool,
    /// Let its API server be profiled, at `/debug/pprof`. Off in benches that are not about profiles.
    pub profiling: bool,
    /// Nodes that it has when the rig is up.
    pub nodes: Vec<NodeSpec>,
    /// Further flags for its API server.
    pub api_server_flags: Vec<String>,
}

impl ClusterOptions {
    /// Writes an audit log.
    #[must_use]
    pub fn audit(mut self) -> Self {
        self.audit = true;
        self
    }

    /// Adds a node.
    #[must_use]
    pub fn node(mut self, node: NodeSpec) -> Self {
        self.nodes.push(node);
        self
    }
}

/// A running cluster. Dropping it ends its processes.
pub struct Cluster {
    name: String,
    folder: PathBuf,
    url: String,
    authority: Authority,
    kubectl: PathBuf,
    parts: BTreeMap<Part, Process>,
    admin: Access,
    client: Client,
    audited: bool,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("name", &self.name).field("url", &self.url).finish_non_exhaustive()
    }
}

impl Cluster {
    pub(super) async fn start(shared: &Shared, name: String, options: ClusterOptions) -> Result<Self> {
        let folder = shared.folder().join(&name);
        let authority = Authority::create(&format!("{name}-ca"))?;
        write_secrets(&folder, &authority)?;
        let (api_server, url) = start_api_server(shared, &name, &folder, &options).await?;
        let (admin, client) = admin_access(&name, &folder, &url, &authority).await?;
        let mut cluster = Self {
            name,
            folder,
            url,
            authority,
            kubectl: shared.binaries.kubectl.clone(),
            parts: BTreeMap::from([(Part::ApiServer, api_server)]),
            admin,
            client,
            audited: options.audit,
        };
        cluster.ready().await?;
        cluster.start_controllers(shared)?;
        cluster.controllers_work().await?;
        for node in &options.nodes {
            cluster.add_node(node).await?;
        }
        cluster.nodes_ready().await?;
        Ok(cluster)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The API server's address: `https://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its folder: certificates, kubeconfigs, audit log.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The administrator's kubeconfig (group `system:masters`).
    pub fn admin(&self) -> &Access {
        &self.admin
    }

    /// A client with the administrator's rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A process of the cluster: API server, controller-manager, scheduler, kwok.
    pub fn part(&self, part: Part) -> Result<&Process> {
        self.parts.get(&part).with_context(|| format!("{} has no {}", self.name, part.program()))
    }

    /// All its processes.
    pub fn parts(&self) -> impl Iterator<Item = (Part, &Process)> {
        self.parts.iter().map(|(part, process)| (*part, process))
    }

    /// A kubeconfig for a user by client certificate, as a member of at most one group beside
    /// `system:authenticated`. The user has the rights that RBAC grants, none by itself.
    pub fn access_for_user(&self, user: &str, group: Option<&str>) -> Result<Access> {
        access_for(&self.server(&self.authority.pem()), &self.folder, &self.authority, (user, group))
    }

    /// A kubeconfig for an existing service account, by a token valid for `lifetime` (at least 10 min).
    pub async fn access_for_service_account(
        &self,
        namespace: &str,
        name: &str,
        lifetime: Duration,
    ) -> Result<Access> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), namespace);
        let spec = TokenRequestSpec {
            expiration_seconds: Some(i64::try_from(lifetime.as_secs())?),
            ..TokenRequestSpec::default()
        };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .with_context(|| format!("token for {namespace}/{name} on {}", self.name))?;
        let token =
            answer.status.and_then(|status| status.token).context("a token request without an answer")?;
        let user = format!("{namespace}-{name}");
        let path = kubeconfig_path(&self.folder, &user);
        let authority = self.authority.pem();
        Access::write(path, &self.server(&authority), &user, Credential::Token(token))
    }

    /// True when it writes an audit log.
    pub fn audited(&self) -> bool {
        self.audited
    }

    /// Its audit log from the beginning. Fails when none is written.
    pub fn audit_log(&self) -> Result<AuditLog> {
        if !self.audited {
            bail!("{} writes no audit log", self.name);
        }
        Ok(AuditLog::open(audit_log_path(&self.folder)))
    }

    /// Waits until the API server answers `/readyz`, for instance after its restart.
    pub async fn ready(&self) -> Result<()> {
        let api_server = self.part(Part::ApiServer)?;
        wait_ready(&self.name, api_server, &self.client).await
    }

    pub(super) fn kubectl_program(&self) -> &Path {
        &self.kubectl
    }

    fn server<'a>(&'a self, authority: &'a str) -> Server<'a> {
        Server { cluster: &self.name, url: &self.url, authority }
    }

    fn start_controllers(&mut self, shared: &Shared) -> Result<()> {
        let stages = self.folder.join("stages.yaml");
        write_private(&stages, STAGES)?;
        for (part, user, group) in [
            (Part::ControllerManager, "system:kube-controller-manager", Some("system:masters")),
            (Part::Scheduler, "system:kube-scheduler", None),
            (Part::Kwok, "kwok", Some("system:masters")),
        ] {
            let access = self.access_for_user(user, group)?;
            let flags = match part {
                Part::ControllerManager => flags::controller_manager(&self.folder, access.path()),
                Part::Scheduler => flags::scheduler(&self.folder, access.path()),
                _ => flags::kwok(access.path(), &stages),
            };
            let process = spawn(shared, &self.name, part, flags)?;
            self.parts.insert(part, process);
        }
        Ok(())
    }

    /// The namespace `default` gets its service account from the controllers: then pods can be created.
    async fn controllers_work(&self) -> Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), "default");
        let what = format!("controllers of {} work", self.name);
        wait::until(&what, READY_BOUND, async || {
            for (_, process) in self.parts() {
                if let Err(ended) = still_runs(process) {
                    return Ok(Some(Err(ended)));
                }
            }
            Ok(accounts.get_opt("default").await?.map(|_| Ok(())))
        })
        .await?
    }
}

fn spawn(shared: &Shared, cluster: &str, part: Part, flags: Vec<String>) -> Result<Process> {
    let name = format!("{cluster}-{}", part.program());
    let (program, mut args) = shared.binaries.command(part);
    args.extend(flags);
    let log = shared.log_file(&name);
    shared.keeper.spawn(ProcessSpec::new(name, program, args, log))
}

async fn start_api_server(
    shared: &Shared,
    name: &str,
    folder: &Path,
    options: &ClusterOptions,
) -> Result<(Process, String)> {
    let audit_policy = folder.join("audit-policy.yaml");
    write_private(&audit_policy, AUDIT_POLICY)?;
    let audit_log = audit_log_path(folder);
    for attempt in 1..=ATTEMPTS {
        let [port] = ports::free_ports()?;
        let mut flags = flags::ApiServer {
            cluster: name,
            etcd_url: shared.etcd_url(),
            folder,
            port,
            audit_policy: options.audit.then_some(audit_policy.as_path()),
            audit_log: &audit_log,
            profiling: options.profiling,
        }
        .flags();
        flags.extend(options.api_server_flags.iter().cloned());
        let process = spawn(shared, name, Part::ApiServer, flags)?;
        if listens(&process, port).await? {
            return Ok((process, format!("https://127.0.0.1:{port}")));
        }
        let tail = process.log_tail(5);
        if attempt == ATTEMPTS || !tail.contains("address already in use") {
            bail!("the API server of {name} ended:\n{tail}");
        }
    }
    bail!("the API server of {name} found no port")
}

/// True when the API server listens, false when it ended before.
async fn listens(process: &Process, port: u16) -> Result<bool> {
    wait::until("the API server listens", READY_BOUND, async || {
        if process.exited()?.is_some() {
            return Ok(Some(false));
        }
        Ok(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok().then_some(true))
    })
    .await
}

async fn wait_ready(name: &str, api_server: &Process, client: &Client) -> Result<()> {
    let what = format!("the API server of {name} is ready");
    wait::until(&what, READY_BOUND, async || {
        if let Err(ended) = still_runs(api_server) {
            return Ok(Some(Err(ended)));
        }
        let request = http::Request::get("/readyz").body(Vec::new())?;
        client.request_text(request).await?;
        Ok(Some(Ok(())))
    })
    .await?
}

/// Fails with its last words when a process has ended.
fn still_runs(process: &Process) -> Result<()> {
    match process.exited()? {
        None => Ok(()),
        Some(status) => bail!("{} ended ({status}): {}", process.name(), process.log_tail(5)),
    }
}

async fn admin_access(
    name: &str,
    folder: &Path,
    url: &str,
    authority: &Authority,
) -> Result<(Access, Client)> {
    let pem = authority.pem();
    let server = Server { cluster: name, url, authority: &pem };
    let admin = access_for(&server, folder, authority, ("admin", Some("system:masters")))?;
    let client = admin.client().await?;
    Ok((admin, client))
}

fn access_for(
    server: &Server<'_>,
    folder: &Path,
    authority: &Authority,
    (user, group): (&str, Option<&str>),
) -> Result<Access> {
    let pair = authority.client(user, group)?;
    Access::write(kubeconfig_path(folder, user), server, user, Credential::Certificate(pair))
}

fn write_secrets(folder: &Path, authority: &Authority) -> Result<()> {
    let server = authority.server()?;
    write_private(&folder.join("ca.crt"), &authority.pem())?;
    write_private(&folder.join("server.crt"), &server.certificate)?;
    write_private(&folder.join("server.key"), &server.key)?;
    let front_proxy = Authority::create("front-proxy-ca")?;
    let pair = front_proxy.client("front-proxy-client", None)?;
    write_private(&folder.join("front-proxy-ca.crt"), &front_proxy.pem())?;
    write_private(&folder.join("front-proxy.crt"), &pair.certificate)?;
    write_private(&folder.join("front-proxy.key"), &pair.key)?;
    let (private, public) = authority::signing_keys()?;
    write_private(&folder.join("service-account.key"), &private)?;
    write_private(&folder.join("service-account.pub"), &public)
}

fn kubeconfig_path(folder: &Path, user: &str) -> PathBuf {
    folder.join("kubeconfigs").join(format!("{}.yaml", user.replace(':', "-")))
}

fn audit_log_path(folder: &Path) -> PathBuf {
    folder.join("audit.log")
}
