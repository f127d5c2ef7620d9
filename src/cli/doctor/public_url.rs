//! `switchboard doctor --url`: checks the public address and what a proxy does to requests.
//!
//! The gateway reports how requests arrive, to a client that shows a pass signed with its key.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::Full;
use serde::Deserialize;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::super::context::CommandContext;
use super::Options;
use super::finding::Finding;
use super::http_client::{ConnectError, HttpClient, Response, Target, Trust, exchange};
use super::proxy_advice;
use crate::config::Loaded;
use crate::gateway::InstanceLock;

/// From the range reserved for documentation: never a real client.
const UNUSED_ADDRESS: &str = "192.0.2.77";
/// The gateway sends the two events of the test stream two seconds apart.
const STREAM_GAP: Duration = Duration::from_secs(1);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const UPLOAD_TIMEOUT: Duration = Duration::from_mins(2);
/// Time for a ping to arrive.
const MARGIN: Duration = Duration::from_secs(5);

/// A request's arrival, as reported by the gateway.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arrival {
    public_url: String,
    base_path: String,
    host: String,
    host_is_known: bool,
    peer: IpAddr,
    peer_is_trusted: bool,
    forwarded_for: String,
    address: IpAddr,
    attachment_bytes: u64,
    ping_secs: u64,
}

pub(super) async fn examine(loaded: Loaded, options: &Options) -> anyhow::Result<Vec<Finding>> {
    let context = CommandContext::open(loaded).await?;
    let pass = context.auth.issue_doctor_pass();
    let base = context.urls().base().to_owned();
    let url = options.url.as_deref().filter(|url| !url.is_empty());
    let server = &context.config.server;
    let running = InstanceLock::running(&context.config.data.dir);
    let configured = Configured {
        base_path: server.base_path.clone(),
        listening: running.map_or(server.listen, |running| running.listening),
    };
    context.close().await;
    let trust = if options.insecure {
        Trust::Anybody
    } else {
        Trust::Authorities
    };
    let visit = PublicUrlCheck {
        target: url.unwrap_or(&base).parse()?,
        caller: HttpClient::new(pass, options.ca.as_deref(), trust)?,
        configured,
    };
    let mut findings = Vec::new();
    let Some(seen) = visit.arrive(&mut findings).await else {
        return Ok(findings);
    };
    findings.push(visit.name(&seen));
    findings.push(visit.address(&seen).await);
    let (socket, stream, upload, redirect) = tokio::join!(
        visit.socket(&seen, options.quick),
        visit.stream(),
        visit.upload(&seen),
        visit.redirect(options.http_port),
    );
    findings.extend(socket);
    findings.extend([stream, upload]);
    findings.extend(redirect);
    Ok(findings)
}

/// One check of the public address.
struct PublicUrlCheck {
    target: Target,
    caller: HttpClient,
    configured: Configured,
}

/// Expectations of the configuration.
struct Configured {
    base_path: String,
    listening: SocketAddr,
}

impl PublicUrlCheck {
    /// Can the gateway be reached? If not, the other checks are skipped.
    async fn arrive(&self, findings: &mut Vec<Finding>) -> Option<Arrival> {
        match self.caller.dial(&self.target).await {
            Ok(line) => findings.push(Finding::ok(
                "address",
                format!("{} answers on {}", self.target.origin(), line.remote),
            )),
            Err(error) => {
                findings.push(self.no_line(&error));
                return None;
            }
        }
        let answer = match self.caller.ask(&self.target, "/api/probe").await {
            Ok(answer) => answer,
            Err(error) => {
                findings.push(Finding::problem(
                    "gateway",
                    format!("no answer over HTTP/1.1: {error:#}"),
                    "See the proxy's log.",
                ));
                return None;
            }
        };
        let seen = answer.json().filter(|_| answer.status == 200);
        let seen = seen.and_then(|seen| serde_json::from_value(seen).ok());
        let finding = match &seen {
            Some(_) => Finding::ok("gateway", "reached through that address"),
            None => self.elsewhere(&answer).await,
        };
        findings.push(finding);
        seen
    }

    fn no_line(&self, error: &ConnectError) -> Finding {
        let origin = self.target.origin();
        match error {
            ConnectError::Reach(error) => Finding::problem(
                "address",
                format!("{origin} cannot be reached: {error}"),
                "Check the name in DNS, the firewall, and that the proxy runs and listens there.",
            ),
            ConnectError::Tls(error) => {
                let said = error.to_string();
                let fix = if said.contains("UnknownIssuer") || said.contains("CaUsedAsEndEntity") {
                    "The certificate's authority is not known here: send the whole chain \
                     (nginx: ssl_certificate with fullchain.pem), or name your own authority with --ca FILE."
                } else if said.contains("NotValidForName") || said.contains("not valid for name") {
                    "The certificate is for another name: get one for this name, or correct server_name."
                } else if said.to_lowercase().contains("expired") {
                    "The certificate has expired: renew it, and let the proxy load it (nginx -s reload)."
                } else if said.contains("corrupt message") || said.contains("InvalidContentType") {
                    "That port does not speak TLS (nginx: listen 443 ssl;), or the URL is http://."
                } else {
                    "See the proxy's log."
                };
                Finding::problem("tls", format!("{origin}: {said}"), fix)
            }
        }
    }

    /// Something answered, but not this gateway.
    async fn elsewhere(&self, answer: &Response) -> Finding {
        let listening = self.configured.listening;
        let (status, base) = (answer.status, &self.target.base);
        let problem = |found: String, fix: &str| Finding::problem("gateway", found, fix);
        if answer.is_problem_of_ours() && status == 404 {
            return self.lost(base).await;
        }
        if answer.is_problem_of_ours() {
            return problem(
                format!("it refuses with {status}: {}", answer.text),
                "See its log.",
            );
        }
        match status {
            300..=399 => {
                let place = answer.headers.get("location");
                let place = place.and_then(|place| place.to_str().ok()).unwrap_or("?");
                problem(
                    format!("the proxy redirects to {place}"),
                    "Ask that address, and set server.public_url to it.",
                )
            }
            401 | 403 | 407 => problem(
                format!("the proxy asks for a login of its own ({status})"),
                "Programs and WebSockets cannot pass it: let the gateway see who comes.",
            ),
            500..600 => problem(
                format!("the proxy answers {status}: it does not reach the gateway"),
                "Does the gateway run (`switchboard health`), and does the proxy know where?",
            )
            .in_proxies(proxy_advice::upstream(&listening.to_string())),
            _ => problem(
                format!("something else answers, with {status}"),
                "The proxy does not send this name and path to the gateway.",
            )
            .in_proxies(proxy_advice::routed(base)),
        }
    }

    /// A gateway answers 404: another base path, or another gateway.
    async fn lost(&self, base: &str) -> Finding {
        let (twice, bare) = (format!("{base}{base}"), String::new());
        let problem = |found: &str, fix: String| Finding::problem("base path", found, fix);
        if self.is_switchboard(base).await {
            return Finding::problem(
                "gateway",
                "a gateway answers that does not know the pass made here",
                "Run this with the configuration of that gateway (--config, --data-dir), and see that \
                 the proxy passes the header Authorization on.",
            );
        }
        if !base.is_empty() && self.is_switchboard(&twice).await {
            return problem(
                "the proxy takes the base path away before it asks the gateway",
                format!("The gateway expects {base} in every path."),
            )
            .in_proxies(proxy_advice::not_stripped(base));
        }
        let configured = &self.configured.base_path;
        if configured != base && self.is_switchboard(configured).await {
            return problem(
                &format!("the gateway is at {}{configured}/", self.target.origin()),
                format!("Ask that address, or set server.base_path = \"{base}\"."),
            );
        }
        if !base.is_empty() && self.is_switchboard(&bare).await {
            return problem(
                "the gateway does not know that path, but answers without it",
                format!("Set server.base_path = \"{base}\"."),
            );
        }
        problem(
            "a gateway answers, but not under that path",
            format!(
                "server.base_path is \"{configured}\", the URL has \"{base}\": they must be the same."
            ),
        )
    }

    async fn is_switchboard(&self, base: &str) -> bool {
        let place = Target {
            base: base.to_owned(),
            ..self.target.clone()
        };
        let answer = self.caller.ask(&place, "/version").await;
        let said = answer.ok().and_then(|answer| answer.json());
        said.is_some_and(|said| said["name"] == env!("CARGO_PKG_NAME"))
    }

    /// Does the proxy pass `Host` on, and is that name allowed?
    fn name(&self, seen: &Arrival) -> Finding {
        let (authority, origin) = (self.target.authority(), self.target.origin());
        if !seen.host_is_known && seen.host != authority {
            return Finding::problem(
                "name",
                format!(
                    "the gateway is asked for `Host: {}` and refuses that (421)",
                    seen.host
                ),
                format!("The proxy must pass on the name that it was asked for, {authority}."),
            )
            .in_proxies(proxy_advice::host(self.target.has_port()));
        }
        if !seen.host_is_known {
            return Finding::problem(
                "name",
                format!(
                    "the gateway is known as {} and refuses {authority} (421)",
                    seen.public_url
                ),
                format!("Set server.public_url = \"{origin}\"."),
            );
        }
        let public = format!("{}{}", seen.public_url, seen.base_path);
        let asked = format!("{origin}{}", self.target.base);
        if public != asked {
            return Finding::warning(
                "name",
                format!("links and cookies are made for {public}"),
                format!("If people use {asked}, set server.public_url and server.base_path to it."),
            );
        }
        Finding::ok("name", public)
    }

    /// Which client address does the gateway see?
    async fn address(&self, seen: &Arrival) -> Finding {
        let found = |text: String, fix: String| Finding::problem("client", text, fix);
        let Ok(line) = self.caller.dial(&self.target).await else {
            return found("the line broke".to_owned(), "Try again.".to_owned());
        };
        let local = line.local;
        if seen.forwarded_for.is_empty() && seen.peer == local && !seen.peer_is_trusted {
            return Finding::ok("client", format!("{local}, without a proxy between"));
        }
        if !seen.peer_is_trusted {
            return found(
                format!(
                    "requests come from {}, which is not a trusted proxy: everybody counts as one address",
                    seen.peer
                ),
                format!("Set server.trusted_proxies = [\"{}\"].", seen.peer),
            );
        }
        let request = self.caller.request(&self.target, "/api/probe");
        let request = request.header("x-forwarded-for", UNUSED_ADDRESS);
        let claimed = match request.body(Full::default()) {
            Ok(request) => exchange(line, request, REQUEST_TIMEOUT).await,
            Err(error) => Err(error.into()),
        };
        let claimed = claimed.ok().and_then(|answer| answer.json());
        match claimed.and_then(|seen| serde_json::from_value::<Arrival>(seen).ok()) {
            // The proxy appends on the right; this machine may be a trusted proxy itself.
            Some(claimed) if claimed.forwarded_for.ends_with(UNUSED_ADDRESS) => {
                return found(
                    "the proxy believes what clients write into X-Forwarded-For: anybody can have \
                     any address"
                        .to_owned(),
                    "It must add the address it sees, or replace what is there.".to_owned(),
                )
                .in_proxies(proxy_advice::spoofed());
            }
            Some(_) => {}
            None => return found("the line broke".to_owned(), "Try again.".to_owned()),
        }
        if seen.forwarded_for.is_empty() {
            return found(
                "the proxy does not say for whom it asks: everybody counts as one address"
                    .to_owned(),
                "It must send X-Forwarded-For.".to_owned(),
            )
            .in_proxies(proxy_advice::forwarded_for());
        }
        if seen.address == local {
            return Finding::ok("client", format!("{local}, through {}", seen.peer));
        }
        Finding::ok(
            "client",
            format!(
                "{} through {}; this machine calls itself {local}, which is right only with address \
                 translation between",
                seen.address, seen.peer
            ),
        )
    }

    /// Does a WebSocket open, and stay open while it is quiet?
    async fn socket(&self, seen: &Arrival, quick: bool) -> Vec<Finding> {
        let no_upgrade = |found: String| {
            let fix = "The proxy must pass the upgrade on.";
            vec![Finding::problem("websocket", found, fix).in_proxies(proxy_advice::upgrade())]
        };
        let Ok(line) = self.caller.dial(&self.target).await else {
            return no_upgrade("the line broke".to_owned());
        };
        let (authority, base) = (self.target.authority(), &self.target.base);
        let Ok(mut request) = format!("ws://{authority}{base}/ws").into_client_request() else {
            return no_upgrade("no URL for a WebSocket can be made of this one".to_owned());
        };
        if let Ok(pass) = format!("Bearer {}", self.caller.pass()).parse() {
            request.headers_mut().insert("authorization", pass);
        }
        let opening = tokio_tungstenite::client_async(request, line.stream);
        let mut socket = match tokio::time::timeout(REQUEST_TIMEOUT, opening).await {
            Ok(Ok((socket, _))) => socket,
            Ok(Err(Error::Http(response))) => {
                let status = response.status().as_u16();
                return no_upgrade(match status {
                    426 => "the gateway was asked for /ws without an upgrade (426)".to_owned(),
                    _ => format!("/ws is refused with {status}"),
                });
            }
            Ok(Err(error)) => return no_upgrade(format!("the handshake failed: {error}")),
            Err(_) => return no_upgrade("no answer to the handshake".to_owned()),
        };
        let word = tokio::time::timeout(REQUEST_TIMEOUT, socket.next()).await;
        if !matches!(word, Ok(Some(Ok(Message::Text(_))))) {
            return no_upgrade("the socket opens, but nothing comes through it".to_owned());
        }
        let mut findings = vec![Finding::ok("websocket", "opens and carries messages")];
        if quick {
            return findings;
        }
        let (opened, ping) = (Instant::now(), Duration::from_secs(seen.ping_secs));
        let quiet = tokio::time::timeout(ping + MARGIN, socket.next()).await;
        let after = opened.elapsed().as_secs_f64().round();
        findings.push(match quiet {
            Ok(Some(Ok(Message::Ping(_)))) => Finding::ok(
                "idle",
                format!("a quiet socket stays open until the gateway pings ({} s)", seen.ping_secs),
            ),
            Err(_) => Finding::problem(
                "idle",
                format!("the gateway's ping did not come through within {after} s"),
                "The proxy holds back small frames; see its log.",
            ),
            Ok(_) => Finding::problem(
                "idle",
                format!("a quiet socket was cut after {after} s; the gateway pings after {}", seen.ping_secs),
                format!(
                    "Let the proxy wait longer than {} s, or set server.ping_secs below its timeout.",
                    seen.ping_secs
                ),
            )
            .in_proxies(proxy_advice::idle(3 * seen.ping_secs)),
        });
        findings
    }

    /// Does a stream arrive unbuffered?
    async fn stream(&self) -> Finding {
        let failed = |found: String| Finding::problem("stream", found, "See the proxy's log.");
        match self.caller.ask(&self.target, "/api/probe/stream").await {
            Ok(answer) if answer.status == 200 && answer.took >= STREAM_GAP => {
                Finding::ok("stream", "events come as they are sent")
            }
            Ok(answer) if answer.status == 200 => Finding::problem(
                "stream",
                "events are held back until the stream ends",
                "The proxy must not buffer server-sent events.",
            )
            .in_proxies(proxy_advice::unbuffered()),
            Ok(answer) => failed(format!("refused with {}", answer.status)),
            Err(error) => failed(format!("broke off: {error:#}")),
        }
    }

    /// Does the largest allowed file pass?
    async fn upload(&self, seen: &Arrival) -> Finding {
        let size = seen.attachment_bytes;
        let mebibytes = size.div_ceil(1 << 20);
        let too_small = |found: String| {
            let fix = format!("Let the proxy pass bodies of limits.attachment_bytes ({size}).");
            Finding::problem("upload", found, fix).in_proxies(proxy_advice::body(mebibytes + 1))
        };
        let Ok(length) = usize::try_from(size) else {
            return Finding::ok("upload", "too large to try");
        };
        let Ok(line) = self.caller.dial(&self.target).await else {
            return too_small("the line broke".to_owned());
        };
        let request = self.caller.request(&self.target, "/api/probe/upload");
        let body = Full::new(Bytes::from(vec![0; length]));
        let sent = match request.method("POST").body(body) {
            Ok(request) => exchange(line, request, UPLOAD_TIMEOUT).await,
            Err(error) => Err(error.into()),
        };
        match sent {
            Ok(answer) if answer.status == 200 => {
                Finding::ok("upload", format!("{mebibytes} MiB pass"))
            }
            Ok(answer) => too_small(format!(
                "a file of {mebibytes} MiB is refused with {}",
                answer.status
            )),
            Err(error) => too_small(format!(
                "a file of {mebibytes} MiB does not get through: {error:#}"
            )),
        }
    }

    /// Does plain HTTP redirect to https?
    async fn redirect(&self, port: u16) -> Option<Finding> {
        if !self.target.https || (self.target.has_port() && port == 80) {
            return None;
        }
        let plain = self.target.plain(port);
        let Ok(line) = self.caller.dial(&plain).await else {
            let found = format!("nothing answers without TLS on port {port}");
            return Some(Finding::ok("http", found));
        };
        // Without the pass: this connection is not encrypted.
        let request = hyper::Request::builder()
            .uri(format!("{}/", plain.base))
            .header("host", plain.authority())
            .body(Full::default());
        let answer = match request {
            Ok(request) => exchange(line, request, REQUEST_TIMEOUT).await.ok()?,
            Err(_) => return None,
        };
        let place = answer.headers.get("location");
        let place = place.and_then(|place| place.to_str().ok()).unwrap_or("");
        Some(match answer.status {
            300..400 if place.starts_with("https://") => {
                Finding::ok("http", format!("port {port} redirects to {place}"))
            }
            status => Finding::problem(
                "http",
                format!("port {port} answers {status} without TLS"),
                "Passwords would go over the line in the clear: send people to https.",
            )
            .in_proxies(proxy_advice::redirect()),
        })
    }
}
