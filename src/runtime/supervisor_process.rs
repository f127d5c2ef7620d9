//! Supervisor process: the process between the gateway and one agent. Applies the sandbox, starts the agent, and
//! ends everything that the agent started.
//!
//! This binary, started once more: what has to happen between fork and exec would need `unsafe` here,
//! but a thread can restrict itself and then start the agent, which inherits the restrictions. The
//! supervisor is a child subreaper, so that no process leaves the agent's tree, whatever its group,
//! session or environment; and it holds one end of a socket pair, so that the tree ends when the gateway
//! does, for whatever reason.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions,
    kill_process_group, pidfd_open, pidfd_send_signal, set_child_subreaper, set_dumpable_behavior,
    waitid, waitpid,
};

pub(super) mod control;

use super::process_table::{self, Entry};
use super::sandbox;
use control::{Descriptors, KILL, LaunchSpec, Report, StartFailure, TERMINATE};

pub(crate) const SUBCOMMAND: &str = "supervise";

/// Of a range up to 1000.
const OOM_SCORE: &str = "500";
/// A dying process takes a moment to disappear.
const ROUND_DELAY: Duration = Duration::from_millis(2);
/// The kernel lets one process at a time change the priority of a session, ten times a second.
const PRIORITY_TRIES: u32 = 20;
const PRIORITY_RETRY_DELAY: Duration = Duration::from_millis(110);

/// Supervises one agent, as the process at the other end of standard input specifies.
pub(crate) fn supervise() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // It goes to the agent's stderr tail.
            drop(writeln!(io::stderr(), "switchboard: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    set_child_subreaper(Some(rustix::process::getpid()))?;
    // No terminal of the operator, and no Ctrl-C from there.
    rustix::process::setsid()?;
    // Where memory is short, agents go first. Where it cannot be said, they go by their size.
    std::fs::write("/proc/self/oom_score_adj", OOM_SCORE).ok();
    let session_priority = std::fs::File::options()
        .write(true)
        .open("/proc/self/autogroup");
    // The agent's environment passes through our memory. Closes our files in `/proc` to other processes
    // of the same user, and to ourselves.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let null = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    let Some((spec, descriptors)) = control::receive_spec(&control)? else {
        return Ok(());
    };
    let agent = match start(spec, descriptors) {
        Ok(agent) => agent,
        Err(failure) => {
            control::send_report(&control, &Report::NotStarted(failure));
            return Ok(());
        }
    };
    let pid = agent.id().cast_signed();
    let agent =
        Pid::from_raw(pid).ok_or_else(|| io::Error::other("the agent has no process id"))?;
    control::send_report(&control, &Report::Started { pid });
    let living = Arc::new(Mutex::new(Some(agent)));
    let (orders, known) = (control.try_clone()?, Arc::clone(&living));
    let thread = std::thread::Builder::new().name("control".into());
    // Not joined: it ends with this process.
    drop(thread.spawn(move || {
        if let Ok(session_priority) = session_priority {
            lower_session_priority(session_priority);
        }
        follow_orders(orders, &known);
    })?);
    reap(agent, &living, &control);
    Ok(())
}

/// Starts the agent from a thread that has restricted itself.
fn start(spec: LaunchSpec, descriptors: Descriptors) -> Result<Child, StartFailure> {
    let starting = std::thread::Builder::new().name("start".into());
    let failed = |error: io::Error| StartFailure::Exec {
        errno: error.raw_os_error(),
        message: error.to_string(),
    };
    let thread = starting.spawn(move || {
        rustix::process::fchdir(&descriptors.directory).map_err(|error| failed(error.into()))?;
        if let Some(mask) = spec.umask {
            rustix::process::umask(rustix::fs::Mode::from_bits_truncate(mask));
        }
        sandbox::restrict_thread(&spec, &descriptors)?;
        Command::new(&spec.program)
            .args(&spec.arguments)
            .env_clear()
            .envs(&spec.variables)
            .stdin(descriptors.stdin)
            .stdout(descriptors.stdout)
            .stderr(descriptors.stderr)
            .process_group(0)
            .spawn()
            .map_err(failed)
    });
    let gone = || StartFailure::Exec {
        errno: None,
        message: "the supervisor failed".into(),
    };
    thread.map_err(failed)?.join().map_err(|_| gone())?
}

/// The agent's process, until it was waited for: as long as its id and its group's mean this process.
type Living = Mutex<Option<Pid>>;

fn lock(living: &Living) -> MutexGuard<'_, Option<Pid>> {
    living.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries out orders until the gateway is gone, which is an order to end everything.
fn follow_orders(mut control: UnixStream, living: &Living) {
    let mut order = [0];
    while let Ok(1) = control.read(&mut order) {
        match order[0] {
            TERMINATE => {
                if let Some(agent) = *lock(living) {
                    kill_process_group(agent, Signal::TERM).ok();
                }
            }
            KILL => break,
            _ => {}
        }
    }
    if let Some(agent) = *lock(living) {
        // `reap` sees its end, and ends the rest.
        kill_process_group(agent, Signal::KILL).ok();
    }
}

/// Where the kernel schedules by sessions, the priority of a process counts within its session only.
fn lower_session_priority(mut file: std::fs::File) {
    for _ in 0..PRIORITY_TRIES {
        match write!(file, "{}", sandbox::NICENESS) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(PRIORITY_RETRY_DELAY);
            }
            _ => return,
        }
    }
}

/// Waits for every process of the tree: until the agent has ended, and then until nothing is left.
fn reap(agent: Pid, living: &Living, control: &UnixStream) {
    let reaped = |pid: Pid| waitpid(Some(pid), WaitOptions::NOHANG).ok().flatten();
    // Looks without reaping: an id must not be reused while a signal may still be sent to it.
    while waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).is_ok() {
        if lock(living).is_some() && has_ended(agent) {
            kill_process_group(agent, Signal::KILL).ok();
            *lock(living) = None;
            let status = reaped(agent).map_or(0, |(_, status)| status.as_raw());
            control::send_report(control, &Report::Ended { status });
            kill_descendants();
        }
        for child in zombie_children()
            .into_iter()
            .filter(|child| *child != agent)
        {
            reaped(child);
        }
    }
}

fn has_ended(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    matches!(waitid(WaitId::Pid(pid), options), Ok(Some(_)))
}

fn zombie_children() -> Vec<Pid> {
    let own = std::process::id().cast_signed();
    let is_ended = |pid: &i32| process_table::entry(*pid).is_some_and(|entry| entry.is_zombie);
    let found = process_table::children(own).unwrap_or_else(|| {
        let all = process_table::all().into_iter();
        all.filter(|entry| entry.parent == own)
            .map(|entry| entry.pid)
            .collect()
    });
    let ended = found.into_iter().filter(is_ended);
    ended.filter_map(Pid::from_raw).collect()
}

/// Kills everything below this process. What has ended is not waited for until nothing lives: it counts
/// against the limit on processes, so that what still lives cannot start others in its place.
fn kill_descendants() {
    let own = std::process::id().cast_signed();
    loop {
        let found = process_table::descendants(own);
        let mut living = found.iter().filter(|entry| !entry.is_zombie).peekable();
        if living.peek().is_none() {
            return;
        }
        living.for_each(kill);
        std::thread::sleep(ROUND_DELAY);
    }
}

/// Kills this process, and never a later one with the same id.
fn kill(entry: &Entry) {
    let process = Pid::from_raw(entry.pid).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    if let Some(Ok(process)) = process
        && process_table::entry(entry.pid).is_some_and(|now| now.started == entry.started)
    {
        pidfd_send_signal(&process, Signal::KILL).ok();
    }
}
