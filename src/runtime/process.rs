//! Process: an agent's processes, seen from the gateway: its streams, its end, and how to end it.
//!
//! The processes themselves are in the care of a supervisor (`supervisor_process.rs`), which is told what to do
//! over a socket pair and exits when nothing is left of the agent.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::orphans;
use super::process_environment::{Account, Environment};
use super::sandbox::{Confinement, ProcessLimits};
use super::stderr_tail::StderrTail;
use super::supervisor_process;
use super::supervisor_process::control::{
    self, Descriptors, KILL, LaunchSpec, Report, StartFailure, TERMINATE,
};
use super::workspace::Workspace;

/// How long the rest of the standard error is read after the end.
const STDERR_DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// How long the supervisor may take to kill what is left. Longer only if processes are stuck in the
/// kernel.
const LEFTOVERS_TIMEOUT: Duration = Duration::from_secs(10);
const KILLED: i32 = 9;

#[derive(Debug)]
pub(super) struct ProcessSpec {
    /// An absolute path.
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) workspace: Workspace,
    /// Further directories that were made for it.
    pub(super) directories: Vec<Workspace>,
    pub(super) environment: Environment,
    /// The system user, if not the gateway's.
    pub(super) account: Option<Account>,
    pub(super) umask: Option<u32>,
    /// `orphans` finds the process and everything that it starts by this.
    pub(super) tag: String,
    pub(super) limits: ProcessLimits,
    /// None: no sandbox.
    pub(super) confinement: Option<Confinement>,
}

/// Why a process was not started.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProcessError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{0}")]
    Account(String),
    #[error("{0}")]
    Sandbox(String),
}

#[derive(Debug)]
pub(super) struct Process {
    supervisor: Child,
    control: UnixStream,
    /// What was read of the supervisor's next line.
    line: Vec<u8>,
    stdout: Option<pipe::Receiver>,
    stdin: Option<pipe::Sender>,
    /// The id of the agent's process and of its group.
    pid: i32,
    ended: Option<ExitStatus>,
    tag: String,
    stderr: StderrTail,
    readers: JoinSet<()>,
}

impl Process {
    /// Its standard output and input; they can be taken once.
    pub(super) fn pipes(&mut self) -> Option<(pipe::Receiver, pipe::Sender)> {
        self.stdout.take().zip(self.stdin.take())
    }

    /// Adds the standard output to the stderr tail, when lines travel over a socket.
    pub(super) fn capture_stdout(&mut self) {
        if let Some(stdout) = self.stdout.take() {
            self.readers.spawn(self.stderr.clone().follow(stdout));
        }
    }

    /// The process group of the agent, until it has ended.
    pub(super) fn group(&self) -> Option<i32> {
        self.ended.is_none().then_some(self.pid)
    }

    pub(super) fn stderr(&self) -> &StderrTail {
        &self.stderr
    }

    /// Waits for its end. Cancel-safe. The supervisor then kills what is left of its tree.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(ended) = self.ended {
            return Ok(ended);
        }
        let status = loop {
            match next_report(&mut self.control, &mut self.line).await? {
                Some(Report::Ended { status }) => break ExitStatus::from_raw(status),
                Some(_) => {}
                // The supervisor was killed.
                None => break ExitStatus::from_raw(KILLED),
            }
        };
        self.ended = Some(status);
        Ok(status)
    }

    /// Ends it: waits for its exit, then sends SIGTERM, then SIGKILL. Then waits until everything that
    /// it started is gone.
    pub(super) async fn end(mut self, exit_timeout: Duration, term_timeout: Duration) {
        if timeout(exit_timeout, self.wait()).await.is_err() {
            self.order(TERMINATE).await;
            if timeout(term_timeout, self.wait()).await.is_err() {
                self.order(KILL).await;
            }
        }
        let tag = std::mem::take(&mut self.tag);
        let left = timeout(LEFTOVERS_TIMEOUT, self.supervisor.wait()).await;
        if !matches!(left, Ok(Ok(status)) if status.success()) {
            // Scanning all processes blocks.
            drop(tokio::task::spawn_blocking(move || orphans::kill(&tag)).await);
        }
        self.drain_stderr().await;
    }

    /// An error means that the supervisor is gone.
    async fn order(&mut self, order: u8) {
        self.control.write_all(&[order]).await.ok();
    }

    /// Waits until its standard error is read to the end.
    pub(super) async fn drain_stderr(&mut self) {
        let reading = async { while self.readers.join_next().await.is_some() {} };
        // A child may hold it open.
        drop(timeout(STDERR_DRAIN_TIMEOUT, reading).await);
    }
}

/// The next line of the supervisor; none if it is gone. Cancel-safe: what was read stays in `line`.
async fn next_report(control: &mut UnixStream, line: &mut Vec<u8>) -> io::Result<Option<Report>> {
    loop {
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            let rest = line.split_off(end + 1);
            let whole = std::mem::replace(line, rest);
            return serde_json::from_slice(&whole)
                .map(Some)
                .map_err(io::Error::other);
        }
        if control.read_buf(line).await? == 0 {
            return Ok(None);
        }
    }
}

/// Starts agents through supervisors.
#[derive(Clone, Debug)]
pub(super) struct ProcessSpawner {
    /// This program.
    binary: PathBuf,
}

impl ProcessSpawner {
    pub(super) fn new(binary: PathBuf) -> Self {
        Self { binary }
    }

    /// Starts an agent. If this is dropped, what was started ends with its control socket.
    pub(super) async fn start(&self, spec: ProcessSpec) -> Result<Process, ProcessError> {
        let (spawner, tag) = (self.clone(), spec.tag.clone());
        let stderr = StderrTail::redacting(&spec.environment.secrets);
        // Starting a process and sending the specification block.
        let spawned = tokio::task::spawn_blocking(move || spawner.spawn(spec)).await;
        let Spawned {
            supervisor,
            control,
            stdin,
            stdout,
            stderr: errors,
        } = spawned.map_err(io::Error::other)??;
        let mut readers = JoinSet::new();
        readers.spawn(
            stderr
                .clone()
                .follow(pipe::Receiver::from_owned_fd(errors)?),
        );
        let mut process = Process {
            supervisor,
            control: UnixStream::from_std(control)?,
            line: Vec::new(),
            stdout: Some(pipe::Receiver::from_owned_fd(stdout)?),
            stdin: Some(pipe::Sender::from_owned_fd(stdin)?),
            pid: 0,
            ended: None,
            tag,
            stderr,
            readers,
        };
        match next_report(&mut process.control, &mut process.line).await? {
            Some(Report::Started { pid }) => process.pid = pid,
            Some(Report::NotStarted(failure)) => return Err(failure.into()),
            Some(Report::Ended { .. }) | None => {
                process.drain_stderr().await;
                let why = process.stderr.excerpt().unwrap_or_default();
                return Err(io::Error::other(format!("its supervisor failed: {why}")).into());
            }
        }
        Ok(process)
    }

    fn spawn(&self, spec: ProcessSpec) -> io::Result<Spawned> {
        let (ours, theirs) = StdUnixStream::pair()?;
        let (stdin, our_stdin) = io::pipe()?;
        let (our_stdout, stdout) = io::pipe()?;
        let (our_stderr, stderr) = io::pipe()?;
        let supervisor = Command::new(&self.binary)
            .arg(supervisor_process::SUBCOMMAND)
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(stderr.try_clone()?)
            .spawn()?;
        let mut variables = spec.environment.variables;
        variables.insert(orphans::VARIABLE.into(), spec.tag.into());
        let launch = LaunchSpec {
            program: spec.program,
            arguments: spec.arguments,
            variables,
            directory: spec.workspace.path,
            account: spec.account,
            umask: spec.umask,
            limits: spec.limits,
            confinement: spec.confinement,
        };
        let descriptors = Descriptors {
            stdin: stdin.into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
            directory: spec.workspace.directory,
            writable: spec
                .directories
                .into_iter()
                .map(|made| made.directory)
                .collect(),
        };
        control::send_spec(&ours, &launch, &descriptors)?;
        ours.set_nonblocking(true)?;
        Ok(Spawned {
            supervisor,
            control: ours,
            stdin: our_stdin.into(),
            stdout: our_stdout.into(),
            stderr: our_stderr.into(),
        })
    }
}

/// A supervisor that has its specification, and our ends of the agent's pipes.
struct Spawned {
    supervisor: Child,
    control: StdUnixStream,
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl From<StartFailure> for ProcessError {
    fn from(failure: StartFailure) -> Self {
        match failure {
            StartFailure::Account { message } => Self::Account(message),
            StartFailure::Sandbox { message } => Self::Sandbox(message),
            StartFailure::Exec {
                errno: Some(errno), ..
            } => Self::Io(io::Error::from_raw_os_error(errno)),
            StartFailure::Exec { message, .. } => Self::Io(io::Error::other(message)),
        }
    }
}
