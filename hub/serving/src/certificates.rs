//! Certificates from a folder, as cert-manager's mounted Secrets are: read again when they change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fairlead_pki::PkiError;
use fairlead_pki::tls::CertificateSlot;
use fairlead_runtime::TaskError;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// How often the folder is looked at. The kubelet needs up to a minute to show a change.
pub const EVERY: Duration = Duration::from_secs(10);

/// There is no certificate to present.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The files are not a certificate and its key.
    #[error("{}: {source}", folder.display())]
    Content {
        /// Where they are.
        folder: PathBuf,
        /// Why.
        source: PkiError,
    },
}

/// `tls.crt` and `tls.key` of a folder, as text.
#[derive(Clone, PartialEq, Eq)]
struct Pair {
    certificate: String,
    key: String,
}

impl Pair {
    async fn read(folder: &Path) -> Result<Self, CertificateError> {
        let text = async |name: &str| {
            let path = folder.join(name);
            let read = tokio::fs::read_to_string(&path).await;
            read.map_err(|source| CertificateError::File { path, source })
        };
        Ok(Self { certificate: text("tls.crt").await?, key: text("tls.key").await? })
    }
}

/// A certificate from a folder, and what follows the folder.
pub struct Folder {
    path: PathBuf,
    known: Pair,
    slot: Arc<CertificateSlot>,
}

impl Folder {
    /// Reads the folder.
    ///
    /// # Errors
    ///
    /// [`CertificateError`] when there is no usable certificate in it.
    pub async fn open(path: &Path) -> Result<Self, CertificateError> {
        let known = Pair::read(path).await?;
        let slot = CertificateSlot::of_pem(&known.certificate, &known.key)
            .map_err(|source| CertificateError::Content { folder: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), known, slot: Arc::new(slot) })
    }

    /// What is presented; it changes with the folder.
    pub fn slot(&self) -> Arc<CertificateSlot> {
        Arc::clone(&self.slot)
    }

    /// Looks at the folder again, and says whether what is presented has changed. Files that do not belong together (they
    /// are being exchanged) change nothing.
    ///
    /// # Errors
    ///
    /// [`CertificateError`]; what was presented stays.
    pub async fn refresh(&mut self) -> Result<bool, CertificateError> {
        let now = Pair::read(&self.path).await?;
        if now == self.known {
            return Ok(false);
        }
        self.slot
            .replace_pem(&now.certificate, &now.key)
            .map_err(|source| CertificateError::Content { folder: self.path.clone(), source })?;
        self.known = now;
        Ok(true)
    }

    /// Follows the folder until cancelled.
    ///
    /// # Errors
    ///
    /// None: what is wrong is said in the log.
    pub async fn follow(mut self, cancel: CancellationToken) -> Result<(), TaskError> {
        loop {
            tokio::select! {
                () = cancel.cancelled() => return Ok(()),
                () = tokio::time::sleep(EVERY) => {}
            }
            match self.refresh().await {
                Ok(true) => info!(folder = %self.path.display(), "exchanged the certificate"),
                Ok(false) => {}
                Err(why) => warn!("the certificate stays as it was: {why}"),
            }
        }
    }
}

impl std::fmt::Debug for Folder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Folder").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str) -> Pair {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        Pair { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() }
    }

    fn put(folder: &Path, certificate: &str, key: &str) {
        std::fs::write(folder.join("tls.crt"), certificate).unwrap();
        std::fs::write(folder.join("tls.key"), key).unwrap();
    }

    #[tokio::test]
    async fn an_exchanged_pair_is_presented_and_half_an_exchange_changes_nothing() {
        let path = std::env::temp_dir().join(format!("fairlead-certificates-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        assert!(matches!(Folder::open(&path).await, Err(CertificateError::File { .. })));
        let (one, two) = (pair("one"), pair("two"));
        put(&path, &one.certificate, &one.key);
        let mut folder = Folder::open(&path).await.unwrap();
        assert!(!folder.refresh().await.unwrap(), "nothing has changed");
        put(&path, &two.certificate, &one.key);
        assert!(matches!(folder.refresh().await, Err(CertificateError::Content { .. })));
        assert!(folder.known == one, "the first pair stays");
        put(&path, &two.certificate, &two.key);
        assert!(folder.refresh().await.unwrap());
        assert!(folder.known == two);
        put(&path, "nonsense", "nonsense");
        assert!(folder.refresh().await.is_err());
        std::fs::remove_dir_all(&path).unwrap();
    }
}
