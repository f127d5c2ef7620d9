//! A process of an agent: started in a group of its own with a mark, and ended with everything that it
//! started.

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

use super::environment::{Account, Environment};
use super::last_words::LastWords;
use super::launcher;
use super::leftovers;

/// Starts that wait for the one before. Full: whoever starts another one waits.
const WAITING: usize = 16;
/// After its end, the rest of what it wrote to its standard error is waited for so long.
const LAST_BREATH: Duration = Duration::from_millis(200);

/// Everything that is needed to start a process.
#[derive(Debug)]
pub(super) struct Plan {
    /// The program, looked up.
    pub(super) program: PathBuf,
    /// Its arguments.
    pub(super) arguments: Vec<String>,
    /// Where it works.
    pub(super) directory: PathBuf,
    /// Its variables.
    pub(super) environment: Environment,
    /// As whom it runs, if not as the gateway.
    pub(super) account: Option<Account>,
    /// Which permissions its files do not get.
    pub(super) umask: Option<u32>,
    /// What it and everything that it starts is found by.
    pub(super) mark: String,
}

/// A running process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    pid: Option<Pid>,
    mark: String,
    words: LastWords,
    /// Reads the standard error.
    listening: JoinSet<()>,
}

impl Process {
    /// Its two ends; each can be taken once.
    pub(super) fn pipes(&mut self) -> Option<(ChildStdout, ChildStdin)> {
        self.child.stdout.take().zip(self.child.stdin.take())
    }

    /// Reads its standard output like its standard error, when its lines travel another way.
    pub(super) fn listen_to_output(&mut self) {
        if let Some(stdout) = self.child.stdout.take() {
            self.listening.spawn(self.words.clone().follow(stdout));
        }
    }

    /// The number of its group.
    pub(super) fn group(&self) -> Option<i32> {
        self.pid.map(|pid| pid.as_raw_nonzero().get())
    }

    /// What it wrote to its standard error.
    pub(super) fn words(&self) -> &LastWords {
        &self.words
    }

    /// Waits for its end. Cancel-safe. Whatever is left of its group ends with it: now, because its
    /// number may soon be somebody else's.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let ended = self.child.wait().await;
        self.signal(Signal::KILL);
        self.pid = None;
        ended
    }

    /// Ends it: waits a while for it to go by itself, asks it, forces it. Then whatever it started is
    /// ended, too.
    pub(super) async fn end(mut self, patience: Duration, grace: Duration) {
        if timeout(patience, self.wait()).await.is_err() {
            self.signal(Signal::TERM);
            if timeout(grace, self.wait()).await.is_err() {
                self.signal(Signal::KILL);
                // Nothing survives this but a process that the kernel itself holds.
                drop(timeout(grace, self.wait()).await);
            }
        }
        self.bury().await;
    }

    /// Ends what a process that is dead has left.
    async fn bury(&mut self) {
        self.signal(Signal::KILL);
        let mark = std::mem::take(&mut self.mark);
        // A look at all processes is not for the threads that serve.
        drop(tokio::task::spawn_blocking(move || leftovers::kill(&mark)).await);
        self.last_breath().await;
    }

    /// To all of its group.
    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid {
            // An error means that there is nobody left.
            kill_process_group(pid, signal).ok();
        }
    }

    /// Waits until what it wrote to its standard error before its end is read.
    pub(super) async fn last_breath(&mut self) {
        let reading = async { while self.listening.join_next().await.is_some() {} };
        // What it started may hold it open.
        drop(timeout(LAST_BREATH, reading).await);
    }
}

impl Drop for Process {
    /// Whoever drops it without ending it leaves nothing behind, either.
    fn drop(&mut self) {
        if self.mark.is_empty() {
            return;
        }
        self.signal(Signal::KILL);
        let mark = std::mem::take(&mut self.mark);
        let thread = std::thread::Builder::new().name("leftovers".into());
        // Nobody can wait for it here; it ends with its look at all processes.
        drop(thread.spawn(move || leftovers::kill(&mark)));
    }
}

/// Starts processes, on a thread of its own: the signal for the death of the parent comes when the
/// *thread* dies that has started a process, and this one lives as long as the gateway.
#[derive(Clone, Debug)]
pub(super) struct Spawner {
    requests: mpsc::Sender<Request>,
    /// The binary that launches; without one, programs are started directly.
    launcher: Option<PathBuf>,
}

#[derive(Debug)]
struct Request {
    command: Box<Command>,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

impl Spawner {
    /// With its thread, which ends with the last clone.
    pub(super) fn new(launcher: Option<PathBuf>) -> io::Result<Self> {
        let (requests, mut received) = mpsc::channel::<Request>(WAITING);
        let thread = std::thread::Builder::new().name("spawner".into());
        // Nobody awaits it: it ends when there is nobody left to ask it.
        drop(thread.spawn(move || {
            while let Some(mut request) = received.blocking_recv() {
                let _context = request.runtime.enter();
                drop(request.reply.send(request.command.spawn()));
            }
        })?);
        Ok(Self { requests, launcher })
    }

    /// Starts a process.
    pub(super) async fn start(&self, plan: Plan) -> io::Result<Process> {
        let words = LastWords::without(&plan.environment.secrets);
        let (mark, command) = (plan.mark.clone(), Box::new(self.command(plan)));
        let (reply, started) = oneshot::channel();
        let request = Request {
            command,
            runtime: Handle::current(),
            reply,
        };
        let gone = || io::Error::other("the gateway stops");
        self.requests.send(request).await.map_err(|_| gone())?;
        let mut child = started.await.map_err(|_| gone())??;
        let mut listening = JoinSet::new();
        if let Some(stderr) = child.stderr.take() {
            listening.spawn(words.clone().follow(stderr));
        }
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Process {
            child,
            pid,
            mark,
            words,
            listening,
        })
    }

    fn command(&self, plan: Plan) -> Command {
        let mut command = match &self.launcher {
            None => Command::new(&plan.program),
            Some(launcher) => {
                let mut command = Command::new(launcher);
                let parent = std::process::id().to_string();
                command.args([launcher::SUBCOMMAND, "--parent", &parent]);
                if let Some(mask) = plan.umask {
                    command.args(["--umask", &format!("{mask:o}")]);
                }
                command.arg("--").arg(&plan.program);
                command
            }
        };
        command
            .args(plan.arguments)
            .env_clear()
            .envs(plan.environment.variables)
            .env(leftovers::VARIABLE, OsString::from(plan.mark))
            .current_dir(plan.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            // If whoever has started it is dropped without a word, it must not stay.
            .kill_on_drop(true);
        if let Some(Account { uid, gid }) = plan.account {
            command.gid(gid).uid(uid);
        }
        command
    }
}
