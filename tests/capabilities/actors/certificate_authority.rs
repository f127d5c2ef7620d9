//! Certificate authority: an operator's own CA, made with openssl, and its certificate for `localhost`.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

const NEW_KEY: &str = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";

pub(crate) struct CertificateAuthority {
    dir: TempDir,
}

impl CertificateAuthority {
    pub(crate) fn new() -> Self {
        let authority = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        authority.openssl(
            "-subj /CN=authority -addext basicConstraints=critical,CA:TRUE -keyout ca.key -out ca.pem",
        );
        authority.openssl(
            "-subj /CN=localhost -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE \
             -CA ca.pem -CAkey ca.key -keyout key.pem -out cert.pem",
        );
        authority
    }

    fn openssl(&self, arguments: &str) {
        let made = Command::new("openssl")
            .args(NEW_KEY.split(' '))
            .args(arguments.split_whitespace())
            .current_dir(&self.dir)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The CA certificate that a client must trust.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.file("ca.pem")
    }

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
