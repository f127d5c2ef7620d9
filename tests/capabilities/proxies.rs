//! Proxies: promises to users hold behind nginx and Caddy with the files in `deploy/`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::actors::{Caddy, Gateway, Nginx, PASSWORD, Ports, Settings, Storage};

mod streams;

const MAX_FILE_BYTES: usize = 10 * 1024 * 1024;

/// Settings of a gateway behind a proxy on these ports.
pub(crate) fn behind(ports: &Ports) -> Settings {
    Settings::new()
        .with_storage(Storage::Sqlite(None))
        .with("SERVER__PUBLIC_URL", &ports.url())
        .with("SERVER__TRUSTED_PROXIES", "127.0.0.1")
}

/// Runs the doctor through the proxy; returns exit code and findings.
pub(crate) fn doctor(gateway: &Gateway, ports: &Ports, url: &str, more: &[&str]) -> (i32, Value) {
    let (certificate, port) = (ports.certificate(), ports.http.to_string());
    let mut arguments = vec!["doctor", "--json", "--http-port", &port, "--url", url];
    if !more.contains(&"--insecure") && !more.contains(&"--stranger") {
        arguments.extend(["--ca", certificate.to_str().unwrap()]);
    }
    arguments.extend(more.iter().filter(|word| **word != "--stranger"));
    let output = gateway.runs(&arguments);
    let printed = serde_json::from_slice(&output.stdout);
    let printed = printed.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().unwrap(), printed)
}

#[track_caller]
fn is_healthy((code, findings): (i32, Value)) {
    let all = findings.as_array().unwrap();
    for what in [
        "address",
        "gateway",
        "name",
        "client",
        "websocket",
        "stream",
        "upload",
        "http",
    ] {
        assert!(
            all.iter().any(|finding| finding["what"] == what),
            "no {what} in {findings:#}"
        );
    }
    for finding in all {
        assert_eq!(finding["verdict"], "ok", "{findings:#}");
    }
    assert_eq!(code, 0);
}

fn logs_in(ports: &Ports, from: &str, path: &str, password: &str, more: &[&str]) -> (u16, Value) {
    let body = json!({ "username": "root", "password": password }).to_string();
    let mut arguments = vec!["--json", &body];
    arguments.extend(more);
    let (status, printed) = ports.curl(from, &format!("{path}/api/auth/login"), &arguments);
    (status, serde_json::from_str(&printed).unwrap())
}

/// Five attempts a minute per client, whatever `X-Forwarded-For` they send.
fn logins_are_counted_by_client(ports: &Ports) {
    let claim = |number: usize| format!("X-Forwarded-For: 198.51.100.{number}");
    for number in 0..5 {
        let (status, _) = logs_in(
            ports,
            "127.0.0.2",
            "",
            "wrong",
            &["--header", &claim(number)],
        );
        assert_eq!(status, 401);
    }
    let (status, printed) = logs_in(ports, "127.0.0.2", "", PASSWORD, &["--header", &claim(9)]);
    assert_eq!(
        (status, &printed["code"]),
        (429, &json!("RATE_LIMITED")),
        "{printed}"
    );
    let (status, printed) = logs_in(ports, "127.0.0.3", "", PASSWORD, &[]);
    assert_eq!(status, 200, "somebody else is not concerned: {printed}");
}

/// The largest file passes; one byte more is refused by the gateway, not by the proxy.
fn files_pass_up_to_the_limit(ports: &Ports) {
    let (_, printed) = logs_in(ports, "127.0.0.4", "", PASSWORD, &[]);
    let token = format!(
        "Authorization: Bearer {}",
        printed["token"].as_str().unwrap()
    );
    let (status, printed) = ports.curl(
        "127.0.0.4",
        "/api/sessions",
        &["--header", &token, "--json", "{}"],
    );
    assert_eq!(status, 201, "{printed}");
    let session: Value = serde_json::from_str(&printed).unwrap();
    let path = format!(
        "/api/sessions/{}/attachments",
        session["id"].as_str().unwrap()
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    for (size, expected) in [(MAX_FILE_BYTES, 201), (MAX_FILE_BYTES + 1, 413)] {
        file.as_file().set_len(size as u64).unwrap();
        let body = format!("@{}", file.path().display());
        let arguments = ["--header", &token, "--data-binary", &body];
        let (status, printed) = ports.curl("127.0.0.4", &path, &arguments);
        assert_eq!(status, expected, "{printed}");
        let printed: Value = serde_json::from_str(&printed).unwrap();
        assert!(
            expected == 201 || printed["details"]["max"] == MAX_FILE_BYTES,
            "{printed}"
        );
    }
}

#[tokio::test]
async fn login_limits_uploads_and_doctor_work_behind_nginx() {
    let ports = Ports::new();
    let gateway = behind(&ports)
        .with("LIMITS__LOGINS_PER_MINUTE", "5")
        .with("SERVER__PING_SECS", "2")
        .start()
        .await;
    let _nginx = Nginx::start(&ports, gateway.address(), &[]);
    logins_are_counted_by_client(&ports);
    files_pass_up_to_the_limit(&ports);
    is_healthy(doctor(&gateway, &ports, &ports.url(), &[]));
}

#[tokio::test]
async fn login_limits_uploads_and_doctor_work_behind_caddy() {
    let ports = Ports::new();
    let gateway = behind(&ports)
        .with("LIMITS__LOGINS_PER_MINUTE", "5")
        .with("SERVER__PING_SECS", "2")
        .start()
        .await;
    let _caddy = Caddy::start(&ports, gateway.address(), "");
    logins_are_counted_by_client(&ports);
    files_pass_up_to_the_limit(&ports);
    is_healthy(doctor(&gateway, &ports, &ports.url(), &[]));
}

#[tokio::test]
async fn the_gateway_works_under_a_base_path_behind_both_proxies() {
    let ports = Ports::new();
    let url = format!("{}/agents", ports.url());
    let settings = behind(&ports).with("SERVER__BASE_PATH", "/agents");
    let gateway = settings.start().await;
    {
        let change = [("    location / {", "    location /agents/ {")];
        let _nginx = Nginx::start(&ports, gateway.address(), &change);
        is_healthy(doctor(&gateway, &ports, &url, &["--quick"]));
        assert_eq!(ports.curl("127.0.0.1", "/elsewhere", &[]).0, 404);
    }
    let _caddy = Caddy::start(&ports, gateway.address(), "/agents");
    is_healthy(doctor(&gateway, &ports, &url, &["--quick"]));
    assert_eq!(
        logs_in(&ports, "127.0.0.1", "/agents", PASSWORD, &[]).0,
        200
    );
}

/// A TLS connection to the proxy.
async fn tls_connection(ports: &Ports) -> TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(ports.certificate()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(("127.0.0.1", ports.https))
        .await
        .unwrap();
    let name = "localhost".try_into().unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap()
}

async fn socket(ports: &Ports, token: &str) -> WebSocketStream<TlsStream<TcpStream>> {
    let mut request = format!("wss://localhost:{}/ws", ports.https)
        .into_client_request()
        .unwrap();
    let token = format!("Bearer {token}").parse().unwrap();
    request.headers_mut().insert("authorization", token);
    tokio_tungstenite::client_async(request, tls_connection(ports).await)
        .await
        .unwrap()
        .0
}

#[tokio::test]
async fn a_quiet_socket_survives_a_proxys_idle_timeout() {
    let patience = Duration::from_secs(4);
    let ports = Ports::new();
    let gateway = behind(&ports).with("SERVER__PING_SECS", "2").start().await;
    let change = [("proxy_read_timeout 75s;", "proxy_read_timeout 4s;")];
    let _nginx = Nginx::start(&ports, gateway.address(), &change);
    let (_, printed) = logs_in(&ports, "127.0.0.1", "", PASSWORD, &[]);
    let mut socket = socket(&ports, printed["token"].as_str().unwrap()).await;
    let opened = Instant::now();
    let mut pings = 0;
    while opened.elapsed() <= patience {
        let frame = socket.next().await.expect("it is open").unwrap();
        pings += usize::from(frame.is_ping());
    }
    assert!(pings >= 2, "{pings}");
    let prompt = json!({ "type": "SUBMIT_PROMPT", "payload": { "text": "hello", "mode": "act" } });
    socket
        .send(Message::text(prompt.to_string()))
        .await
        .unwrap();
    loop {
        let frame = socket.next().await.expect("it is open").unwrap();
        if frame
            .to_text()
            .is_ok_and(|text| text.contains("TASK_OUTPUT_CHUNK"))
        {
            return;
        }
    }
}
