//! Process: one process group of an agent, tagged, and ended with everything that it started.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::orphans;
use super::parent_death_shim;
use super::process_environment::{Account, Environment};
use super::stderr_tail::StderrTail;

/// Starts that wait for the spawn thread. Full: the starter waits.
const MAX_QUEUED_STARTS: usize = 16;
/// How long the rest of the standard error is read after the end.
const STDERR_DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct ProcessSpec {
    /// An absolute path.
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) directory: PathBuf,
    pub(super) environment: Environment,
    /// The system user, if not the gateway's.
    pub(super) account: Option<Account>,
    pub(super) umask: Option<u32>,
    /// `orphans` finds the process and everything that it starts by this.
    pub(super) tag: String,
}

#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    pid: Option<Pid>,
    tag: String,
    stderr: StderrTail,
    readers: JoinSet<()>,
}

impl Process {
    /// Its standard output and input; they can be taken once.
    pub(super) fn pipes(&mut self) -> Option<(ChildStdout, ChildStdin)> {
        self.child.stdout.take().zip(self.child.stdin.take())
    }

    /// Adds the standard output to the stderr tail, when lines travel over a socket.
    pub(super) fn capture_stdout(&mut self) {
        if let Some(stdout) = self.child.stdout.take() {
            self.readers.spawn(self.stderr.clone().follow(stdout));
        }
    }

    pub(super) fn group(&self) -> Option<i32> {
        self.pid.map(|pid| pid.as_raw_nonzero().get())
    }

    pub(super) fn stderr(&self) -> &StderrTail {
        &self.stderr
    }

    /// Waits for its end. Cancel-safe. Kills the rest of its group at once, because the group's id may
    /// be reused soon.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let ended = self.child.wait().await;
        self.signal(Signal::KILL);
        self.pid = None;
        ended
    }

    /// Ends it: waits for its exit, then sends SIGTERM, then SIGKILL. Then kills everything that it
    /// started.
    pub(super) async fn end(mut self, exit_timeout: Duration, term_timeout: Duration) {
        if timeout(exit_timeout, self.wait()).await.is_err() {
            self.signal(Signal::TERM);
            if timeout(term_timeout, self.wait()).await.is_err() {
                self.signal(Signal::KILL);
                // Only a process stuck in the kernel survives this.
                drop(timeout(term_timeout, self.wait()).await);
            }
        }
        self.kill_orphans().await;
    }

    /// Kills what the dead process left behind.
    async fn kill_orphans(&mut self) {
        self.signal(Signal::KILL);
        let tag = std::mem::take(&mut self.tag);
        // Scanning all processes blocks.
        drop(tokio::task::spawn_blocking(move || orphans::kill(&tag)).await);
        self.drain_stderr().await;
    }

    /// Signals the whole group.
    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid {
            // An error means that the group is empty.
            kill_process_group(pid, signal).ok();
        }
    }

    /// Waits until its standard error is read to the end.
    pub(super) async fn drain_stderr(&mut self) {
        let reading = async { while self.readers.join_next().await.is_some() {} };
        // A child may hold it open.
        drop(timeout(STDERR_DRAIN_TIMEOUT, reading).await);
    }
}

impl Drop for Process {
    /// Dropping it without `end` leaves nothing behind either.
    fn drop(&mut self) {
        if self.tag.is_empty() {
            return;
        }
        self.signal(Signal::KILL);
        let tag = std::mem::take(&mut self.tag);
        let thread = std::thread::Builder::new().name("orphans".into());
        // Cannot be awaited here; it ends after one scan of all processes.
        drop(thread.spawn(move || orphans::kill(&tag)));
    }
}

/// Starts processes on a thread of its own: the parent-death signal fires when the *thread* that
/// spawned a process dies, and this one lives as long as the gateway.
#[derive(Clone, Debug)]
pub(super) struct ProcessSpawner {
    requests: mpsc::Sender<Request>,
    /// The binary with the exec shim; without it, programs are started directly.
    exec_shim: Option<PathBuf>,
}

#[derive(Debug)]
struct Request {
    command: Box<Command>,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

impl ProcessSpawner {
    /// Starts the thread, which ends with the last clone.
    pub(super) fn new(exec_shim: Option<PathBuf>) -> io::Result<Self> {
        let (requests, mut received) = mpsc::channel::<Request>(MAX_QUEUED_STARTS);
        let thread = std::thread::Builder::new().name("spawner".into());
        // Not awaited: it ends with the last sender.
        drop(thread.spawn(move || {
            while let Some(mut request) = received.blocking_recv() {
                let _context = request.runtime.enter();
                drop(request.reply.send(request.command.spawn()));
            }
        })?);
        Ok(Self {
            requests,
            exec_shim,
        })
    }

    pub(super) async fn start(&self, spec: ProcessSpec) -> io::Result<Process> {
        let stderr = StderrTail::redacting(&spec.environment.secrets);
        let (tag, command) = (spec.tag.clone(), Box::new(self.command(spec)));
        let (reply, started) = oneshot::channel();
        let request = Request {
            command,
            runtime: Handle::current(),
            reply,
        };
        let stopping = || io::Error::other("the gateway stops");
        self.requests.send(request).await.map_err(|_| stopping())?;
        let mut child = started.await.map_err(|_| stopping())??;
        let mut readers = JoinSet::new();
        if let Some(pipe) = child.stderr.take() {
            readers.spawn(stderr.clone().follow(pipe));
        }
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Process {
            child,
            pid,
            tag,
            stderr,
            readers,
        })
    }

    fn command(&self, spec: ProcessSpec) -> Command {
        let mut command = match &self.exec_shim {
            None => Command::new(&spec.program),
            Some(exec_shim) => {
                let mut command = Command::new(exec_shim);
                let parent = std::process::id().to_string();
                command.args([parent_death_shim::SUBCOMMAND, "--parent", &parent]);
                if let Some(mask) = spec.umask {
                    command.args(["--umask", &format!("{mask:o}")]);
                }
                command.arg("--").arg(&spec.program);
                command
            }
        };
        command
            .args(spec.arguments)
            .env_clear()
            .envs(spec.environment.variables)
            .env(orphans::VARIABLE, OsString::from(spec.tag))
            .current_dir(spec.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            // A dropped start must leave no process.
            .kill_on_drop(true);
        if let Some(Account { uid, gid }) = spec.account {
            command.gid(gid).uid(uid);
        }
        command
    }
}
