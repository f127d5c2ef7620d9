//! Proxies: Debian's nginx and Caddy with the files in `deploy/`; only names, ports and certificates are
//! replaced.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::ports::free_port;

const TIMEOUT: Duration = Duration::from_secs(20);

/// Ports of a proxy, and its certificate.
pub(crate) struct Ports {
    pub(crate) http: u16,
    pub(crate) https: u16,
    dir: TempDir,
}

impl Ports {
    /// Free ports, and a certificate for `localhost`.
    pub(crate) fn new() -> Self {
        let [http, https] = [free_port(), free_port()];
        let dir = tempfile::tempdir().unwrap();
        let made = Command::new("openssl")
            .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split(' '))
            .args("-subj /CN=localhost -addext subjectAltName=DNS:localhost".split(' '))
            .args(
                "-addext basicConstraints=critical,CA:FALSE -keyout key.pem -out cert.pem"
                    .split(' '),
            )
            .current_dir(&dir)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        Self { http, https, dir }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}", self.https)
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    fn file(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// Runs curl from one of this machine's addresses.
    pub(crate) fn curl(&self, from: &str, path: &str, arguments: &[&str]) -> (u16, String) {
        let output: Output = Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--max-time",
                "30",
                "--noproxy",
                "*",
            ])
            .args(["--interface", from, "--cacert", &self.file("cert.pem")])
            .args(["--write-out", "\n%{http_code}"])
            .args(arguments)
            .arg(format!("{}{path}", self.url()))
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let (body, status) = printed.rsplit_once('\n').unwrap();
        assert_ne!(status, "000", "{}", String::from_utf8_lossy(&output.stderr));
        (status.parse().unwrap(), body.to_owned())
    }
}

/// A proxy's process; ended when dropped.
struct Process(Child);

impl Process {
    fn start(mut command: Command, ports: &Ports) -> Self {
        let log = std::fs::File::create(ports.file("log")).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let mut process = Self(command.spawn().unwrap());
        let deadline = Instant::now() + TIMEOUT;
        for port in [ports.http, ports.https] {
            while TcpStream::connect(("127.0.0.1", port)).is_err() {
                let log = || std::fs::read_to_string(ports.file("log")).unwrap();
                assert!(Instant::now() < deadline, "it does not listen: {}", log());
                assert!(
                    process.0.try_wait().unwrap().is_none(),
                    "it ended: {}",
                    log()
                );
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        process
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGTERM, so that nginx ends its workers too.
        let id = self.0.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().ok();
        self.0.wait().ok();
    }
}

fn shipped(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("deploy")
        .join(name);
    std::fs::read_to_string(file).unwrap()
}

/// Replaces texts, each of which must be present.
fn put_in(text: &mut String, changes: &[(&str, &str)]) {
    for (old, new) in changes {
        assert!(text.contains(old), "{old} is not in {text}");
        *text = text.replace(old, new);
    }
}

/// nginx in front of a gateway.
pub(crate) struct Nginx {
    _process: Process,
}

impl Nginx {
    /// Starts with the file in `deploy/nginx`, after these replacements.
    pub(crate) fn start(ports: &Ports, gateway: SocketAddr, changes: &[(&str, &str)]) -> Self {
        let mut text = shipped("nginx/switchboard.conf");
        let (http, https) = (ports.http, ports.https);
        put_in(
            &mut text,
            &[
                (
                    "https://$host$request_uri",
                    &format!("https://$host:{https}$request_uri"),
                ),
                ("Host $host;", "Host $host:$server_port;"),
                (
                    "/etc/ssl/agents.example.org/fullchain.pem",
                    &ports.file("cert.pem"),
                ),
                (
                    "/etc/ssl/agents.example.org/privkey.pem",
                    &ports.file("key.pem"),
                ),
                ("agents.example.org", "localhost"),
                ("listen 80;", &format!("listen 127.0.0.1:{http};")),
                ("listen 443 ssl;", &format!("listen 127.0.0.1:{https} ssl;")),
                ("127.0.0.1:7717", &gateway.to_string()),
            ],
        );
        put_in(&mut text, changes);
        let dir = ports.dir.path().display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {dir}/{name};\n"))
            .concat();
        let whole = format!(
            "user root;\ndaemon off;\npid {dir}/pid;\nerror_log stderr;\nworker_processes 1;\n\
             events {{}}\nhttp {{\naccess_log off;\n{temporary}{text}}}\n"
        );
        std::fs::write(ports.file("nginx.conf"), whole).unwrap();
        let mut command = Command::new("nginx");
        command.args(["-e", "stderr", "-c", &ports.file("nginx.conf")]);
        Self {
            _process: Process::start(command, ports),
        }
    }
}

/// Caddy in front of a gateway.
pub(crate) struct Caddy {
    _process: Process,
}

impl Caddy {
    /// Starts with the file in `deploy/caddy`, configured by its variables.
    pub(crate) fn start(ports: &Ports, gateway: SocketAddr, base_path: &str) -> Self {
        let mut text = shipped("caddy/Caddyfile");
        let own = format!(
            "\tbind 127.0.0.1\n\ttls {} {}\n\trequest_body",
            ports.file("cert.pem"),
            ports.file("key.pem")
        );
        put_in(&mut text, &[("\trequest_body", &own)]);
        std::fs::write(ports.file("Caddyfile"), text).unwrap();
        let mut command = Command::new("caddy");
        command
            .args([
                "run",
                "--adapter",
                "caddyfile",
                "--config",
                &ports.file("Caddyfile"),
            ])
            .env("HOME", ports.dir.path())
            .env("XDG_DATA_HOME", ports.dir.path())
            .env("XDG_CONFIG_HOME", ports.dir.path())
            .env("HTTP_PORT", ports.http.to_string())
            .env("HTTPS_PORT", ports.https.to_string())
            .env("SWITCHBOARD_HOST", "localhost")
            .env("SWITCHBOARD_UPSTREAM", gateway.to_string())
            .env("SWITCHBOARD_BASE_PATH", base_path);
        Self {
            _process: Process::start(command, ports),
        }
    }
}
