//! A line to the public address: TCP, TLS, and one HTTP request on it.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::http::header::{AUTHORIZATION, CONNECTION, HOST, USER_AGENT};
use axum::http::{HeaderMap, Request, Uri};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const PATIENCE: Duration = Duration::from_secs(10);
/// No answer that is looked at is longer.
const ANSWER_BYTES: usize = 64 * 1024;
/// Where distributions keep their list of authorities.
const SYSTEM_AUTHORITIES: [&str; 2] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
];

/// A public address: scheme, name, port, and the path in front of every route.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) https: bool,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) base: String,
}

impl FromStr for Target {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let expected =
            "expected a URL like https://agents.example.org or https://example.org/agents";
        let uri: Uri = text.parse().context(expected)?;
        let https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => anyhow::bail!(expected),
        };
        let authority = uri.authority().context(expected)?;
        anyhow::ensure!(
            uri.query().is_none() && !authority.as_str().contains('@') && !text.contains('#'),
            expected
        );
        Ok(Self {
            https,
            host: authority.host().to_ascii_lowercase(),
            port: authority.port_u16().unwrap_or(if https { 443 } else { 80 }),
            base: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl Target {
    /// As in the header `Host`: the port only if it is not the usual one.
    pub(super) fn authority(&self) -> String {
        if self.has_port() {
            format!("{}:{}", self.host, self.port)
        } else {
            self.host.clone()
        }
    }

    pub(super) fn has_port(&self) -> bool {
        self.port != if self.https { 443 } else { 80 }
    }

    pub(super) fn origin(&self) -> String {
        let scheme = if self.https { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    /// The same place without TLS.
    pub(super) fn plain(&self, port: u16) -> Self {
        Self {
            https: false,
            port,
            ..self.clone()
        }
    }
}

/// Both directions of a line.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// An open line, and which addresses are at its ends.
pub(super) struct Line {
    pub(super) stream: Box<dyn Duplex>,
    pub(super) local: IpAddr,
    pub(super) remote: IpAddr,
}

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("{0}")]
    Reach(io::Error),
    #[error("{0}")]
    Tls(io::Error),
}

/// Opens lines and asks over them.
pub(super) struct Caller {
    tls: Arc<ClientConfig>,
    pass: String,
}

/// What came back, and when.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
    /// Between the first bytes of the body and its end.
    pub(super) took: Duration,
}

impl Answer {
    /// As JSON, if it is that.
    pub(super) fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_str(&self.text).ok()
    }

    /// Did the gateway write this error, or somebody in front of it?
    pub(super) fn is_problem_of_ours(&self) -> bool {
        let said = self.json().unwrap_or_default();
        said["code"].is_string() && said["requestId"].is_string()
    }
}

impl Caller {
    pub(super) fn new(
        pass: String,
        authority: Option<&Path>,
        trust: Trust,
    ) -> anyhow::Result<Self> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let tls = match trust {
            Trust::Anybody => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Credulous(provider)))
                .with_no_client_auth(),
            Trust::Authorities => builder
                .with_root_certificates(authorities(authority)?)
                .with_no_client_auth(),
        };
        Ok(Self {
            tls: Arc::new(tls),
            pass,
        })
    }

    pub(super) fn pass(&self) -> &str {
        &self.pass
    }

    pub(super) async fn dial(&self, target: &Target) -> Result<Line, DialError> {
        let late = || io::Error::other(format!("nothing answers within {} s", PATIENCE.as_secs()));
        let name = target.host.trim_matches(['[', ']']);
        let connecting = TcpStream::connect((name, target.port));
        let stream = tokio::time::timeout(PATIENCE, connecting)
            .await
            .unwrap_or_else(|_| Err(late()))
            .map_err(DialError::Reach)?;
        let ends = (stream.local_addr(), stream.peer_addr());
        let (Ok(local), Ok(remote)) = ends else {
            return Err(DialError::Reach(io::Error::other("closed at once")));
        };
        let stream: Box<dyn Duplex> = if target.https {
            let name = ServerName::try_from(name.to_owned())
                .map_err(|error| DialError::Tls(io::Error::other(error)))?;
            let shaking = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream);
            let shaken = tokio::time::timeout(PATIENCE, shaking).await;
            Box::new(
                shaken
                    .unwrap_or_else(|_| Err(late()))
                    .map_err(DialError::Tls)?,
            )
        } else {
            Box::new(stream)
        };
        Ok(Line {
            stream,
            local: local.ip().to_canonical(),
            remote: remote.ip().to_canonical(),
        })
    }

    /// One request with the pass, on a line of its own.
    pub(super) async fn ask(&self, target: &Target, path: &str) -> anyhow::Result<Answer> {
        let line = self.dial(target).await?;
        let request = self.request(target, path);
        exchange(line, request.body(Full::default())?, PATIENCE).await
    }

    pub(super) fn request(&self, target: &Target, path: &str) -> axum::http::request::Builder {
        Request::builder()
            .uri(format!("{}{path}", target.base))
            .header(HOST, target.authority())
            .header(CONNECTION, "close")
            .header(USER_AGENT, "switchboard-doctor")
            .header(AUTHORIZATION, format!("Bearer {}", self.pass))
    }
}

/// Sends a request and reads the whole answer.
pub(super) async fn exchange(
    line: Line,
    request: Request<Full<Bytes>>,
    patience: Duration,
) -> anyhow::Result<Answer> {
    let talk = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(line.stream)).await?;
        let asked = async {
            let response = sender.send_request(request).await?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let (mut body, mut bytes, mut first) = (response.into_body(), Vec::new(), None);
            while let Some(frame) = body.frame().await {
                first.get_or_insert_with(Instant::now);
                if let Some(data) = frame?.data_ref()
                    && bytes.len() < ANSWER_BYTES
                {
                    bytes.extend_from_slice(data);
                }
            }
            Ok(Answer {
                status,
                headers,
                text: String::from_utf8_lossy(&bytes).into_owned(),
                took: first.map_or(Duration::ZERO, |first| first.elapsed()),
            })
        };
        // Its failures are those of the request.
        let carried = async {
            connection.await.ok();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            answer = asked => answer,
            () = carried => unreachable!("it goes on for ever"),
        }
    };
    let late = || anyhow::anyhow!("no answer within {} s", patience.as_secs());
    tokio::time::timeout(patience, talk)
        .await
        .unwrap_or_else(|_| Err(late()))
}

/// Whose certificates are accepted.
#[derive(Clone, Copy)]
pub(super) enum Trust {
    Authorities,
    Anybody,
}

/// The ones in a file, else the system's, else those that browsers know.
fn authorities(file: Option<&Path>) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let system = SYSTEM_AUTHORITIES.iter().map(Path::new);
    match file.or_else(|| system.into_iter().find(|file| file.exists())) {
        Some(file) => {
            let read = || format!("cannot read certificates from {}", file.display());
            for certificate in CertificateDer::pem_file_iter(file).with_context(read)? {
                // The system's list may hold one that is too old for us.
                roots.add(certificate.with_context(read)?).ok();
            }
            anyhow::ensure!(
                !roots.is_empty(),
                "there is no certificate in {}",
                file.display()
            );
        }
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    Ok(roots)
}

/// For `--insecure`: believes whoever answers, as the operator asked for.
#[derive(Debug)]
struct Credulous(Arc<CryptoProvider>);

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_address_is_a_name_and_perhaps_a_path() {
        let target: Target = "https://Agents.example.org/agents/".parse().unwrap();
        assert_eq!(target.origin(), "https://agents.example.org");
        assert_eq!(target.base, "/agents");
        let target: Target = "https://x:8443".parse().unwrap();
        assert_eq!(
            (target.authority(), target.base),
            ("x:8443".to_owned(), String::new())
        );
        for text in [
            "agents.example.org",
            "ftp://x",
            "https://u@x",
            "https://x?y",
            "/x",
        ] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
