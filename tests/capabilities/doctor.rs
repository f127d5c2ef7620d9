//! Doctor: `switchboard doctor --url` names the missing directive, and the gateway tells strangers nothing.

use serde_json::Value;

use crate::actors::{Gateway, Nginx, PASSWORD, Ports, Settings};
use crate::ports::free_port;
use crate::proxies::{behind, doctor};

/// Fails unless this finding is a problem with this text and this nginx directive.
#[track_caller]
fn names(findings: &Value, what: &str, found: &str, line: &str) {
    let all = findings.as_array().unwrap();
    let finding = all.iter().find(|finding| finding["what"] == what);
    let finding = finding.unwrap_or_else(|| panic!("no {what} in {findings:#}"));
    assert_eq!(finding["verdict"], "problem", "{finding:#}");
    let shown = finding["found"].as_str().unwrap();
    assert!(shown.contains(found), "{finding:#}");
    let fix = finding["fix"].as_str().unwrap();
    let nginx = finding["proxies"]["nginx"].as_str().unwrap_or_default();
    assert!(fix.contains(line) || nginx.contains(line), "{finding:#}");
}

#[tokio::test]
async fn doctor_names_the_directives_missing_in_nginx() {
    let ports = Ports::new();
    let gateway = behind(&ports).start().await;
    let changes = [
        ("proxy_set_header Upgrade $http_upgrade;", ""),
        (
            "proxy_buffering off;",
            "proxy_ignore_headers X-Accel-Buffering;",
        ),
        ("$proxy_add_x_forwarded_for", "$http_x_forwarded_for"),
        ("client_max_body_size 32m;", ""),
        ("return 301", "return 200 hello; #"),
    ];
    let _nginx = Nginx::start(&ports, gateway.address(), &changes);
    let (code, findings) = doctor(&gateway, &ports, &ports.url(), &["--quick"]);
    assert_eq!(code, 1);
    names(
        &findings,
        "websocket",
        "without an upgrade",
        "proxy_set_header Upgrade $http_upgrade;",
    );
    names(&findings, "stream", "held back", "proxy_buffering off;");
    names(
        &findings,
        "client",
        "anybody can have any address",
        "$proxy_add_x_forwarded_for;",
    );
    names(&findings, "upload", "413", "client_max_body_size 11m;");
    names(&findings, "http", "200 without TLS", "return 301 https://");
}

#[tokio::test]
async fn doctor_names_an_idle_timeout_and_a_missing_forwarded_for_header() {
    let ports = Ports::new();
    let gateway = behind(&ports).start().await;
    let changes = [
        ("proxy_read_timeout 75s;", "proxy_read_timeout 1s;"),
        ("$proxy_add_x_forwarded_for", "''"),
    ];
    let _nginx = Nginx::start(&ports, gateway.address(), &changes);
    let (code, findings) = doctor(&gateway, &ports, &ports.url(), &[]);
    assert_eq!(code, 1);
    names(
        &findings,
        "idle",
        "was cut after 1 s",
        "proxy_read_timeout 75s;",
    );
    names(
        &findings,
        "client",
        "does not say for whom",
        "proxy_set_header X-Forwarded-For",
    );
}

#[tokio::test]
async fn doctor_names_a_wrong_host_on_either_side() {
    let ports = Ports::new();
    let mut gateway = behind(&ports).start().await;
    {
        let change = [("Host $host:$server_port;", "Host other.example;")];
        let _nginx = Nginx::start(&ports, gateway.address(), &change);
        let (code, findings) = doctor(&gateway, &ports, &ports.url(), &["--quick"]);
        assert_eq!(code, 1);
        names(
            &findings,
            "name",
            "Host: other.example",
            "proxy_set_header Host $host:$server_port;",
        );
    }
    gateway.set("SERVER__PUBLIC_URL", Some("https://agents.example.org"));
    gateway.set("SERVER__TRUSTED_PROXIES", None);
    gateway.restart();
    let _nginx = Nginx::start(&ports, gateway.address(), &[]);
    let (_, findings) = doctor(&gateway, &ports, &ports.url(), &["--quick"]);
    names(
        &findings,
        "name",
        "known as https://agents.example.org",
        "server.public_url = \"https://localhost",
    );
    names(
        &findings,
        "client",
        "not a trusted proxy",
        "server.trusted_proxies = [\"127.0.0.1\"]",
    );
}

#[tokio::test]
async fn doctor_names_a_stripped_or_missing_base_path() {
    let ports = Ports::new();
    let gateway = behind(&ports)
        .with("SERVER__BASE_PATH", "/agents")
        .start()
        .await;
    let url = format!("{}/agents", ports.url());
    {
        let upstream = format!("http://{};", gateway.address());
        let stripping = format!("http://{}/;", gateway.address());
        let changes = [
            ("    location / {", "    location /agents/ {"),
            (&upstream, &stripping),
        ];
        let _nginx = Nginx::start(&ports, gateway.address(), &changes);
        let (code, findings) = doctor(&gateway, &ports, &url, &["--quick"]);
        assert_eq!(code, 1);
        names(
            &findings,
            "base path",
            "takes the base path away",
            "nothing behind the port",
        );
    }
    let _nginx = Nginx::start(&ports, gateway.address(), &[]);
    let (_, findings) = doctor(&gateway, &ports, &ports.url(), &["--quick"]);
    names(
        &findings,
        "base path",
        "/agents/",
        "server.base_path = \"\"",
    );
}

#[tokio::test]
async fn doctor_names_dns_upstream_and_tls_problems() {
    let ports = Ports::new();
    let gateway = behind(&ports).start().await;
    let (code, findings) = doctor(&gateway, &ports, &ports.url(), &["--quick"]);
    assert_eq!(code, 1);
    names(&findings, "address", "cannot be reached", "DNS");
    // An upstream port on which nothing listens.
    let nowhere = format!("127.0.0.1:{}", free_port());
    let change = [(gateway.address().to_string(), nowhere)];
    let change = change
        .each_ref()
        .map(|(old, new)| (old.as_str(), new.as_str()));
    {
        let _nginx = Nginx::start(&ports, gateway.address(), &change);
        let (_, findings) = doctor(&gateway, &ports, &ports.url(), &["--quick"]);
        names(
            &findings,
            "gateway",
            "502",
            &format!("proxy_pass http://{};", gateway.address()),
        );
    }
    let _nginx = Nginx::start(&ports, gateway.address(), &[]);
    let (_, findings) = doctor(&gateway, &ports, &ports.url(), &["--quick", "--stranger"]);
    names(&findings, "tls", "", "--ca FILE");
    let other = format!("https://127.0.0.1:{}", ports.https);
    let (_, findings) = doctor(&gateway, &ports, &other, &["--quick"]);
    names(&findings, "tls", "", "another name");
    let plain = format!("https://localhost:{}", ports.http);
    let (_, findings) = doctor(&gateway, &ports, &plain, &["--quick"]);
    names(&findings, "tls", "", "does not speak TLS");
    let (code, findings) = doctor(&gateway, &ports, &ports.url(), &["--quick", "--insecure"]);
    assert_eq!(code, 0, "{findings:#}");
}

#[tokio::test]
async fn doctor_recognises_a_gateway_with_other_keys() {
    let ports = Ports::new();
    let gateway = behind(&ports).start().await;
    let other = behind(&ports).start().await;
    let _nginx = Nginx::start(&ports, other.address(), &[]);
    let (code, findings) = doctor(&gateway, &ports, &ports.url(), &["--quick"]);
    assert_eq!(code, 1);
    names(&findings, "gateway", "does not know the pass", "--data-dir");
}

#[tokio::test]
async fn doctor_routes_are_hidden_from_strangers_and_users() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    for visitor in [gateway.anonymous(), root] {
        visitor.gets("/api/probe").await.refuses(404, "NOT_FOUND");
        visitor
            .gets("/api/probe/stream")
            .await
            .refuses(404, "NOT_FOUND");
        let sent = visitor.sends("POST", "/api/probe/upload", None).await;
        sent.refuses(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn doctor_refuses_an_invalid_url() {
    let gateway = Settings::without_admin().start().await;
    let output = gateway.runs(&["doctor", "--url", "agents.example.org"]);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        printed.contains("expected a URL like https://"),
        "{printed}"
    );
    assert!(!printed.contains(PASSWORD));
    assert_eq!(gateway.runs(&["doctor", "--quick"]).status.code(), Some(2));
}
