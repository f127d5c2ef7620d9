//! HTTP client for the public address: TCP, TLS, and one request per connection.
//!
//! Written by hand on hyper because the doctor must tell a failed TCP connect from a failed TLS handshake, see
//! both ends' addresses, time the pieces of a body, and hand the open stream to the WebSocket check; `reqwest`
//! hides all four.

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

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer that is read.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// Where distributions keep their certificate authorities.
const SYSTEM_CA_FILES: [&str; 2] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
];

/// A public URL: scheme, host, port and base path.
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
    /// As in the header `Host`: the port only if it is not the default.
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

    /// The same host without TLS.
    pub(super) fn plain(&self, port: u16) -> Self {
        Self {
            https: false,
            port,
            ..self.clone()
        }
    }
}

/// A stream that is read and written.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// An open connection and the addresses of both ends.
pub(super) struct Connection {
    pub(super) stream: Box<dyn Stream>,
    pub(super) local: IpAddr,
    pub(super) remote: IpAddr,
}

/// Why the connection failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("{0}")]
    Reach(io::Error),
    #[error("{0}")]
    Tls(io::Error),
}

/// Opens connections and sends requests.
pub(super) struct HttpClient {
    tls: Arc<ClientConfig>,
    pass: String,
}

/// The response, and its timing.
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
    /// From the first bytes of the body to its end.
    pub(super) took: Duration,
}

impl Response {
    /// The body as JSON.
    pub(super) fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_str(&self.text).ok()
    }

    /// Did the gateway write this error, or a proxy in front of it?
    pub(super) fn is_problem_of_ours(&self) -> bool {
        let said = self.json().unwrap_or_default();
        said["code"].is_string() && said["requestId"].is_string()
    }
}

impl HttpClient {
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
                .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate(provider)))
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

    pub(super) async fn dial(&self, target: &Target) -> Result<Connection, ConnectError> {
        let late = || {
            io::Error::other(format!(
                "nothing answers within {} s",
                REQUEST_TIMEOUT.as_secs()
            ))
        };
        let name = target.host.trim_matches(['[', ']']);
        let connecting = TcpStream::connect((name, target.port));
        let stream = tokio::time::timeout(REQUEST_TIMEOUT, connecting)
            .await
            .unwrap_or_else(|_| Err(late()))
            .map_err(ConnectError::Reach)?;
        let ends = (stream.local_addr(), stream.peer_addr());
        let (Ok(local), Ok(remote)) = ends else {
            return Err(ConnectError::Reach(io::Error::other("closed at once")));
        };
        let stream: Box<dyn Stream> = if target.https {
            let name = ServerName::try_from(name.to_owned())
                .map_err(|error| ConnectError::Tls(io::Error::other(error)))?;
            let shaking = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream);
            let shaken = tokio::time::timeout(REQUEST_TIMEOUT, shaking).await;
            Box::new(
                shaken
                    .unwrap_or_else(|_| Err(late()))
                    .map_err(ConnectError::Tls)?,
            )
        } else {
            Box::new(stream)
        };
        Ok(Connection {
            stream,
            local: local.ip().to_canonical(),
            remote: remote.ip().to_canonical(),
        })
    }

    /// Sends one request with the pass, on a connection of its own.
    pub(super) async fn ask(&self, target: &Target, path: &str) -> anyhow::Result<Response> {
        let line = self.dial(target).await?;
        let request = self.request(target, path);
        exchange(line, request.body(Full::default())?, REQUEST_TIMEOUT).await
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

/// Sends a request and reads the whole response.
pub(super) async fn exchange(
    line: Connection,
    request: Request<Full<Bytes>>,
    timeout: Duration,
) -> anyhow::Result<Response> {
    let talk = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(line.stream)).await?;
        let asked = async {
            let response = sender.send_request(request).await?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let (mut body, mut bytes, mut first) = (response.into_body(), Vec::new(), None);
            while let Some(frame) = body.frame().await {
                first.get_or_insert_with(Instant::now);
                if let Some(data) = frame?.data_ref()
                    && bytes.len() < MAX_RESPONSE_BYTES
                {
                    bytes.extend_from_slice(data);
                }
            }
            Ok(Response {
                status,
                headers,
                text: String::from_utf8_lossy(&bytes).into_owned(),
                took: first.map_or(Duration::ZERO, |first| first.elapsed()),
            })
        };
        // The request reports the connection's failures.
        let carried = async {
            connection.await.ok();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            answer = asked => answer,
            () = carried => unreachable!("it goes on for ever"),
        }
    };
    let late = || anyhow::anyhow!("no answer within {} s", timeout.as_secs());
    tokio::time::timeout(timeout, talk)
        .await
        .unwrap_or_else(|_| Err(late()))
}

/// Which certificates are accepted.
#[derive(Clone, Copy)]
pub(super) enum Trust {
    Authorities,
    Anybody,
}

/// From a file, else the system's, else the built-in public ones.
fn authorities(file: Option<&Path>) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let system = SYSTEM_CA_FILES.iter().map(Path::new);
    match file.or_else(|| system.into_iter().find(|file| file.exists())) {
        Some(file) => {
            let read = || format!("cannot read certificates from {}", file.display());
            for certificate in CertificateDer::pem_file_iter(file).with_context(read)? {
                // The system's list may contain certificates that rustls rejects.
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

/// For `--insecure`: accepts any certificate.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
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
