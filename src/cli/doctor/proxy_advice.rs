//! Proxy advice: the missing configuration line for nginx, Caddy and Traefik. Whole files are in `deploy/`.

use serde::Serialize;

/// One setting in the syntax of each proxy.
#[derive(Clone, Serialize)]
pub(super) struct Lines {
    nginx: String,
    caddy: String,
    traefik: String,
}

impl Lines {
    fn new(nginx: impl Into<String>, caddy: impl Into<String>, traefik: impl Into<String>) -> Self {
        Self {
            nginx: nginx.into(),
            caddy: caddy.into(),
            traefik: traefik.into(),
        }
    }

    pub(super) fn each(&self) -> [(&'static str, &str); 3] {
        [
            ("nginx", &self.nginx),
            ("Caddy", &self.caddy),
            ("Traefik", &self.traefik),
        ]
    }
}

pub(super) fn upstream(listening: &str) -> Lines {
    Lines::new(
        format!("proxy_pass http://{listening};"),
        format!("reverse_proxy {listening}"),
        format!("services.switchboard.loadBalancer.servers: [{{ url: \"http://{listening}\" }}]"),
    )
}

pub(super) fn host(has_port: bool) -> Lines {
    let name = if has_port {
        "$host:$server_port"
    } else {
        "$host"
    };
    Lines::new(
        format!("proxy_set_header Host {name};"),
        "remove `header_up Host …`; it passes the name on by itself",
        "loadBalancer.passHostHeader: true",
    )
}

pub(super) fn forwarded_for() -> Lines {
    Lines::new(
        "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
        "remove `header_up X-Forwarded-For …`; it sends it by itself",
        "it sends it by itself; remove what deletes X-Forwarded-For (headers.customRequestHeaders)",
    )
}

pub(super) fn spoofed() -> Lines {
    Lines::new(
        "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
        "remove `header_up X-Forwarded-For …`, and from `trusted_proxies` whoever is not a proxy",
        "entryPoints.NAME.forwardedHeaders.insecure: false, and trustedIPs with proxies only",
    )
}

pub(super) fn upgrade() -> Lines {
    Lines::new(
        "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; \
         proxy_set_header Connection $connection_upgrade;",
        "remove `header_up Connection …` and `header_up Upgrade …`; it upgrades by itself",
        "remove what changes Connection or Upgrade (headers.customRequestHeaders)",
    )
}

pub(super) fn unbuffered() -> Lines {
    Lines::new(
        "proxy_buffering off; and no `proxy_ignore_headers X-Accel-Buffering`",
        "flush_interval -1, inside reverse_proxy; and no `encode` for text/event-stream",
        "remove the middlewares buffering and compress, or excludedContentTypes: [text/event-stream]",
    )
}

pub(super) fn idle(secs: u64) -> Lines {
    Lines::new(
        format!("proxy_read_timeout {secs}s; proxy_send_timeout {secs}s;"),
        "remove `stream_timeout` from reverse_proxy and `write` from servers.timeouts",
        format!("entryPoints.NAME.transport.respondingTimeouts.idleTimeout: {secs}s"),
    )
}

pub(super) fn body(mebibytes: u64) -> Lines {
    Lines::new(
        format!("client_max_body_size {mebibytes}m;"),
        format!("request_body {{ max_size {mebibytes}MiB }}"),
        format!("buffering.maxRequestBodyBytes: {}", mebibytes << 20),
    )
}

pub(super) fn not_stripped(base: &str) -> Lines {
    Lines::new(
        format!("location {base}/ with nothing behind the port in proxy_pass"),
        format!("handle {base}/* in place of handle_path"),
        "remove the middleware stripPrefix",
    )
}

pub(super) fn routed(base: &str) -> Lines {
    Lines::new(
        format!("location {base}/ {{ proxy_pass …; }}"),
        format!("reverse_proxy {base}/* …"),
        format!("rule: PathPrefix(`{base}`)"),
    )
}

pub(super) fn redirect() -> Lines {
    Lines::new(
        "return 301 https://$host$request_uri; in the server on port 80",
        "name the site without http://; it redirects by itself",
        "entryPoints.web.http.redirections.entryPoint: { to: websecure, scheme: https }",
    )
}
