//! The flags of each program.

use std::path::Path;

use crate::binaries::ControlPlane;

/// Client limits of the controllers: at the default of 20 requests a second 300 Jobs take 89 s instead of 5 s.
const CLIENT_LIMITS: [&str; 2] = ["--kube-api-qps=1000", "--kube-api-burst=2000"];

/// etcd: without fsync, since its data need not survive the machine.
pub(super) fn etcd(control_plane: &ControlPlane, data: &Path, client: u16, peer: u16) -> Vec<String> {
    let data = data.display();
    let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    match control_plane {
        ControlPlane::Combined(_) => vec![
            format!("--data-dir={data}"),
            format!("--listen-client-url={client}"),
            format!("--listen-peer-url={peer}"),
        ],
        ControlPlane::Folder(_) => vec![
            format!("--data-dir={data}"),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
            "--quota-backend-bytes=4294967296".to_owned(),
        ],
    }
}

/// The API server's flags that follow from where it is.
pub(super) struct ApiServer<'a> {
    pub(super) cluster: &'a str,
    pub(super) etcd_url: &'a str,
    pub(super) folder: &'a Path,
    pub(super) port: u16,
    pub(super) audit_policy: Option<&'a Path>,
    pub(super) audit_log: &'a Path,
    pub(super) profiling: bool,
}

impl ApiServer<'_> {
    pub(super) fn flags(&self) -> Vec<String> {
        let folder = self.folder.display();
        let mut flags = vec![
            format!("--etcd-servers={}", self.etcd_url),
            format!("--etcd-prefix=/{}", self.cluster),
            format!("--secure-port={}", self.port),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            format!("--client-ca-file={folder}/ca.crt"),
            format!("--tls-cert-file={folder}/server.crt"),
            format!("--tls-private-key-file={folder}/server.key"),
            format!("--cert-dir={folder}/certs"),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={folder}/service-account.pub"),
            format!("--service-account-signing-key-file={folder}/service-account.key"),
            format!("--profiling={}", self.profiling),
        ];
        flags.extend(self.front_proxy());
        if let Some(policy) = self.audit_policy {
            flags.push(format!("--audit-policy-file={}", policy.display()));
            flags.push(format!("--audit-log-path={}", self.audit_log.display()));
            // One file, whatever its size, each line written before the request ends.
            flags.push("--audit-log-maxsize=100000".to_owned());
            flags.push("--audit-log-mode=blocking".to_owned());
        }
        flags
    }

    /// How it shows who it is to aggregated APIs, and how it says who the user is.
    fn front_proxy(&self) -> [String; 7] {
        let folder = self.folder.display();
        [
            format!("--requestheader-client-ca-file={folder}/front-proxy-ca.crt"),
            "--requestheader-allowed-names=front-proxy-client".to_owned(),
            "--requestheader-username-headers=X-Remote-User".to_owned(),
            "--requestheader-group-headers=X-Remote-Group".to_owned(),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
            format!("--proxy-client-cert-file={folder}/front-proxy.crt"),
            format!("--proxy-client-key-file={folder}/front-proxy.key"),
        ]
    }
}

/// kube-controller-manager. Without a node's life cycle, new nodes would keep the not-ready taint; what needs a cloud
/// is left out.
pub(super) fn controller_manager(folder: &Path, kubeconfig: &Path) -> Vec<String> {
    let folder = folder.display();
    let mut flags = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--controllers=*,-cloud-node-lifecycle-controller,-node-route-controller,-service-lb-controller"
            .to_owned(),
        format!("--service-account-private-key-file={folder}/service-account.key"),
        format!("--root-ca-file={folder}/ca.crt"),
        format!("--cert-dir={folder}/certs"),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        "--concurrent-job-syncs=10".to_owned(),
        "--profiling=false".to_owned(),
    ];
    flags.extend(CLIENT_LIMITS.map(str::to_owned));
    flags
}

/// kube-scheduler.
pub(super) fn scheduler(folder: &Path, kubeconfig: &Path) -> Vec<String> {
    let mut flags = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--cert-dir={}/certs", folder.display()),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        "--profiling=false".to_owned(),
    ];
    flags.extend(CLIENT_LIMITS.map(str::to_owned));
    flags
}

/// kwok: only the nodes marked as fake, so that a real kubelet's node is left alone.
pub(super) fn kwok(kubeconfig: &Path, stages: &Path) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--config={}", stages.display()),
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".to_owned(),
        "--node-lease-duration-seconds=40".to_owned(),
    ]
}
