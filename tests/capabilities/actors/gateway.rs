//! Gateway: a process started and commanded as an operator would.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{HttpClient, RawTcp};
use crate::postgres::Database;

/// The password of every user in these tests.
pub(crate) const PASSWORD: &str = "correct horse battery";
const BINARY: &str = env!("CARGO_BIN_EXE_switchboard");
const TIMEOUT: Duration = Duration::from_secs(20);

/// Configuration of a gateway before its start.
pub(crate) struct Settings {
    variables: Vec<(String, String)>,
    admin: bool,
    /// Its configuration file, if it has one.
    file: Option<String>,
    /// Overrides the storage chosen by `SWITCHBOARD_TEST_DATABASE`.
    storage: Option<Storage>,
}

/// Storage of a gateway.
pub(crate) enum Storage {
    /// SQLite in this data directory, or in a temporary one.
    Sqlite(Option<PathBuf>),
    /// Postgres at this URL.
    Postgres(String),
}

impl Settings {
    /// A gateway with the administrator `root` and a high login limit.
    pub(crate) fn new() -> Self {
        Self {
            variables: Vec::new(),
            admin: true,
            file: None,
            storage: None,
        }
        .with("LIMITS__LOGINS_PER_MINUTE", "100000")
    }

    /// A gateway without an administrator, as at its first start.
    pub(crate) fn without_admin() -> Self {
        Self {
            admin: false,
            ..Self::new()
        }
    }

    /// Sets the variable `SWITCHBOARD__<key>`.
    pub(crate) fn with(mut self, key: &str, value: &str) -> Self {
        let name = format!("SWITCHBOARD__{key}");
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value.to_owned()));
        self
    }

    /// Sets any other environment variable.
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn with_config_file(mut self, file: &str) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    /// Chooses the storage, whatever `SWITCHBOARD_TEST_DATABASE` says.
    pub(crate) fn with_storage(mut self, storage: Storage) -> Self {
        self.storage = Some(storage);
        self
    }

    pub(crate) async fn start(mut self) -> Gateway {
        let dir = tempfile::tempdir().unwrap();
        let mut data = dir.path().join("data");
        let mut database = None;
        match self.storage.take() {
            Some(Storage::Sqlite(place)) => data = place.unwrap_or(data),
            Some(Storage::Postgres(url)) => self = self.with("DATA__DATABASE_URL", &url),
            None => match std::env::var("SWITCHBOARD_TEST_DATABASE").as_deref() {
                Ok("postgres") => {
                    let made = database.insert(Database::create().await);
                    self = self.with("DATA__DATABASE_URL", &made.url);
                }
                Ok("sqlite") | Err(_) => {}
                Ok(other) => panic!("SWITCHBOARD_TEST_DATABASE={other}: sqlite or postgres?"),
            },
        }
        if let Some(file) = self.file.take() {
            std::fs::write(data.with_file_name("switchboard.toml"), file).unwrap();
        }
        if self.admin {
            self = self
                .with("ADMIN__USERNAME", "root")
                .with("ADMIN__PASSWORD", PASSWORD);
        }
        let mut gateway = Gateway {
            data,
            variables: self.variables,
            process: None,
            _dir: dir,
            _database: database,
        };
        gateway.restart();
        gateway
    }
}

struct Process {
    child: Child,
    /// Its standard output up to the line with the address.
    startup_output: String,
    address: SocketAddr,
}

/// A running gateway; killed when dropped.
pub(crate) struct Gateway {
    data: PathBuf,
    variables: Vec<(String, String)>,
    process: Option<Process>,
    _dir: TempDir,
    _database: Option<Database>,
}

impl Gateway {
    pub(crate) async fn start() -> Self {
        Settings::new().start().await
    }

    pub(crate) fn is_on_postgres(&self) -> bool {
        self.variables
            .iter()
            .any(|(name, _)| name.ends_with("DATABASE_URL"))
    }

    pub(crate) fn sqlite_file(&self) -> PathBuf {
        self.data.join("switchboard.db")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.process().address
    }

    /// Its standard output up to the line with the address.
    pub(crate) fn startup_output(&self) -> &str {
        &self.process().startup_output
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process().child.id()
    }

    fn process(&self) -> &Process {
        self.process.as_ref().expect("the gateway runs")
    }

    /// Changes a setting for later starts and commands.
    pub(crate) fn set(&mut self, key: &str, value: Option<&str>) {
        let name = format!("SWITCHBOARD__{key}");
        self.variables.retain(|(known, _)| *known != name);
        let set = value.map(|value| (name, value.to_owned()));
        self.variables.extend(set);
    }

    /// Kills it, if it runs, and starts it again on the same data.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.starts_at("127.0.0.1:0");
    }

    /// Starts it on the same data at this address. It must not be running.
    pub(crate) fn starts_at(&mut self, address: &str) {
        let log = std::fs::File::create(self.data.with_extension("log")).unwrap();
        let mut child = self
            .command(&["serve", "--listen", address])
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut startup_output = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while !startup_output.contains("  open ") {
            let read = lines.read_line(&mut startup_output).unwrap();
            assert!(read > 0, "the gateway did not start: {}", self.log());
        }
        let running = std::fs::read_to_string(self.data.join("gateway.lock")).unwrap();
        let running: serde_json::Value = serde_json::from_str(&running).unwrap();
        self.process = Some(Process {
            address: running["listening"].as_str().unwrap().parse().unwrap(),
            child,
            startup_output,
        });
    }

    /// Its log since the last start.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.data.with_extension("log")).unwrap_or_default()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        let ours = |name: &str| name.starts_with("SWITCHBOARD") || name.starts_with("OTEL_");
        for (name, _) in std::env::vars().filter(|(name, _)| ours(name)) {
            command.env_remove(name);
        }
        command
            .args(arguments)
            .arg("--data-dir")
            .arg(&self.data)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.data.parent().unwrap())
            .stdin(Stdio::null());
        command
    }

    /// A shell function that runs commands on the gateway's data directory.
    pub(crate) fn shell_function(&self, name: &str) -> String {
        let variables = self.variables.iter();
        let variables: Vec<String> = variables
            .map(|(name, value)| format!("{name}='{value}'"))
            .collect();
        let variables = variables.join(" ");
        let data = self.data.display();
        format!("{name}() {{ {variables} '{BINARY}' \"$@\" --data-dir '{data}'; }}")
    }

    /// Runs a command on the gateway's data directory.
    pub(crate) fn runs(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub(crate) fn prints(&self, arguments: &[&str]) -> String {
        let output = self.runs(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn runs_with_input(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        child.wait_with_output().unwrap()
    }

    /// Creates a user with [`PASSWORD`].
    pub(crate) fn adds_user(&self, name: &str, role: &str) {
        let made = self.runs_with_input(
            &["user", "add", name, "--role", role, "--password-stdin"],
            PASSWORD,
        );
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
    }

    /// A client without a login.
    pub(crate) fn anonymous(&self) -> HttpClient {
        HttpClient::new(self.address())
    }

    /// A client logged in as this user.
    pub(crate) async fn logged_in(&self, name: &str) -> HttpClient {
        let mut browser = self.anonymous();
        browser.logs_in(name, PASSWORD).await.is(200);
        browser
    }

    pub(crate) async fn raw_tcp(&self) -> RawTcp {
        RawTcp::connect(self.address()).await
    }

    /// A WebSocket that reads nothing, with a small receive buffer.
    pub(crate) async fn connects_without_reading(
        &self,
        token: &str,
        query: &str,
    ) -> tokio::net::TcpStream {
        let small = tokio::net::TcpSocket::new_v4().unwrap();
        small.set_recv_buffer_size(4096).unwrap();
        let mut stream = small.connect(self.address()).await.unwrap();
        let head = format!(
            "GET /ws{query} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            self.address()
        );
        tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes())
            .await
            .unwrap();
        stream
    }

    /// Sends a request and reads nothing of its response yet.
    pub(crate) async fn requests_without_reading(
        &self,
        token: &str,
        path: &str,
    ) -> tokio::net::TcpStream {
        let small = tokio::net::TcpSocket::new_v4().unwrap();
        small.set_recv_buffer_size(4096).unwrap();
        let mut stream = small.connect(self.address()).await.unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\r\n",
            self.address()
        );
        tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes())
            .await
            .unwrap();
        stream
    }

    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &self.pid().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        let mut process = self.process.take().expect("the gateway runs");
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = process.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(
                Instant::now() < deadline,
                "the gateway does not end: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.child.kill().ok();
            process.child.wait().ok();
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs the binary in this directory, without a gateway.
pub(crate) fn program(dir: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(BINARY);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SWITCHBOARD")) {
        command.env_remove(name);
    }
    command
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}
