//! What must be there beside Rust, and how to get it.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

/// A program that is needed.
struct Tool {
    name: &'static str,
    /// Arguments that make it say its version without asking anybody.
    probe: &'static [&'static str],
    /// A variable that makes it unnecessary.
    instead: Option<&'static str>,
    why: &'static str,
    get: &'static str,
}

const TOOLS: [Tool; 2] = [
    Tool {
        name: "kubectl",
        probe: &["version", "--client"],
        instead: None,
        why: "the rig and the tour in README.md use it",
        get: "see kubernetes.io/docs/tasks/tools; any version from 1.30 on will do",
    },
    Tool {
        name: "go",
        probe: &["version"],
        instead: Some("KUBEBUILDER_ASSETS"),
        why: "the rig builds Kubernetes' own control plane once",
        get: "see go.dev/doc/install, version 1.26 or newer; or set KUBEBUILDER_ASSETS to a folder with etcd, \
              kube-apiserver, kube-controller-manager and kube-scheduler, 1.36 or newer",
    },
];

/// Fails with the names of what is missing and the way to get it.
pub(crate) fn check() -> Result<()> {
    let missing: Vec<String> = TOOLS.iter().filter(|tool| !tool.is_there()).map(Tool::advice).collect();
    if !missing.is_empty() {
        bail!("{}", missing.join("\n"));
    }
    Ok(())
}

impl Tool {
    fn is_there(&self) -> bool {
        let instead = self.instead.is_some_and(|variable| std::env::var_os(variable).is_some());
        let mut probe = Command::new(self.name);
        probe.args(self.probe).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        instead || probe.status().is_ok_and(|status| status.success())
    }

    fn advice(&self) -> String {
        format!("{} is missing ({}): {}", self.name, self.why, self.get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_the_way_to_get_it() {
        let tool = Tool { name: "fairlead-no-such", probe: &[], instead: None, why: "w", get: "buy one" };
        assert!(!tool.is_there());
        assert_eq!(tool.advice(), "fairlead-no-such is missing (w): buy one");
    }

    #[test]
    fn a_program_that_is_there_is_found() {
        let tool = Tool { name: "sh", probe: &["-c", "exit 0"], instead: None, why: "w", get: "g" };
        assert!(tool.is_there());
    }
}
