//! An authority of an operator's own, made with openssl, and what it vouches for: `localhost`.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

const KEY: &str = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";

/// Vouches for a server on this machine.
pub(crate) struct Authority {
    dir: TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let authority = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        authority.makes(
            "-subj /CN=authority -addext basicConstraints=critical,CA:TRUE -keyout ca.key -out ca.pem",
        );
        authority.makes(
            "-subj /CN=localhost -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE \
             -CA ca.pem -CAkey ca.key -keyout key.pem -out cert.pem",
        );
        authority
    }

    fn makes(&self, arguments: &str) {
        let made = Command::new("openssl")
            .args(KEY.split(' '))
            .args(arguments.split_whitespace())
            .current_dir(&self.dir)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What somebody must trust to be convinced.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.file("ca.pem")
    }

    /// The server's side.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let chain = vec![CertificateDer::from_pem_file(self.file("cert.pem")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(self.file("key.pem")).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}
