//! kubectl, as a user runs it.

use std::process::Stdio;

use anyhow::{Context, Result, bail};
use tokio::{io::AsyncWriteExt, process::Command};

use super::{Access, Cluster};

impl Cluster {
    /// Runs kubectl as the cluster's administrator and returns what it prints. Fails with its message when it does.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.kubectl_as(self.admin(), args, "").await
    }

    /// `kubectl apply --server-side` of these manifests (YAML), as the cluster's administrator.
    pub async fn apply(&self, manifests: &str) -> Result<String> {
        self.kubectl_as(self.admin(), &["apply", "--server-side", "-f", "-"], manifests).await
    }

    /// Runs kubectl with some identity and some input.
    pub async fn kubectl_as(&self, access: &Access, args: &[&str], input: &str) -> Result<String> {
        let command = format!("kubectl {} (on {})", args.join(" "), self.name());
        let mut child = Command::new(self.kubectl_program())
            .arg("--kubeconfig")
            .arg(access.path())
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("start {command}"))?;
        let mut stdin = child.stdin.take().context("kubectl has no input")?;
        let feed = async {
            // One that fails early does not read its input: its own message says why.
            stdin.write_all(input.as_bytes()).await.ok();
            drop(stdin);
        };
        let ((), output) = tokio::join!(feed, child.wait_with_output());
        let output = output.with_context(|| format!("run {command}"))?;
        if !output.status.success() {
            bail!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
