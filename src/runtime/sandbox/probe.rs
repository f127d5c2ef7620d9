//! Sandbox probe: tries from inside a sandbox what an agent must not be able to do, and what it needs.
//!
//! This binary, started once more in the place of an agent. The attempts come as JSON in its argument, and
//! what became of them goes to its standard output.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) const SUBCOMMAND: &str = "sandbox-probe";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const PROBE_FILE: &str = "switchboard-sandbox-probe";

/// Something to try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::runtime) enum Attempt {
    /// Read a byte of a file.
    Read(PathBuf),
    /// List a directory.
    List(PathBuf),
    /// Create a file in a directory.
    Write(PathBuf),
    /// Create a file in the directory that a variable names.
    WriteVariable(String),
    /// Read the environment of a process.
    Environment(u32),
    /// Read the memory of a process.
    Memory(u32),
    /// Signal a process.
    Signal(i32),
    /// The environment of the parent, which is the supervisor.
    ParentEnvironment,
    /// Connect to an address.
    Connect(SocketAddr),
}

impl std::fmt::Display for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read(path) => write!(f, "read {}", path.display()),
            Self::List(path) => write!(f, "list {}", path.display()),
            Self::Write(path) => write!(f, "write in {}", path.display()),
            Self::WriteVariable(name) => write!(f, "write in ${name}"),
            Self::Environment(pid) => write!(f, "read the environment of process {pid}"),
            Self::Memory(pid) => write!(f, "read the memory of process {pid}"),
            Self::Signal(pid) => write!(f, "signal process {pid}"),
            Self::ParentEnvironment => write!(f, "read the environment of the supervisor"),
            Self::Connect(address) => write!(f, "connect to {address}"),
        }
    }
}

/// What became of an attempt.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::runtime) struct Tried {
    pub(in crate::runtime) attempt: Attempt,
    /// Why it failed; none if it worked.
    pub(in crate::runtime) error: Option<String>,
}

/// Carries out the attempts of the second argument.
pub(crate) fn run() -> ExitCode {
    let attempts = std::env::args().nth(2).unwrap_or_default();
    let Ok(attempts) = serde_json::from_str::<Vec<Attempt>>(&attempts) else {
        return ExitCode::FAILURE;
    };
    let tried: Vec<Tried> = attempts
        .into_iter()
        .map(|attempt| Tried {
            error: attempt_it(&attempt).err().map(|error| error.to_string()),
            attempt,
        })
        .collect();
    let printed = serde_json::to_vec(&tried).map(|json| io::stdout().write_all(&json));
    match printed {
        Ok(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn attempt_it(attempt: &Attempt) -> io::Result<()> {
    match attempt {
        Attempt::Read(path) => read(path),
        Attempt::List(path) => std::fs::read_dir(path).map(drop),
        Attempt::Write(path) => write(path),
        Attempt::WriteVariable(name) => {
            let path = std::env::var_os(name);
            write(Path::new(&path.ok_or_else(|| io::Error::other("not set"))?))
        }
        Attempt::Environment(pid) => read(Path::new(&format!("/proc/{pid}/environ"))),
        Attempt::Memory(pid) => std::fs::File::open(format!("/proc/{pid}/mem")).map(drop),
        Attempt::Signal(pid) => {
            let pid = rustix::process::Pid::from_raw(*pid);
            let pid = pid.ok_or_else(|| io::Error::other("no process"))?;
            Ok(rustix::process::test_kill_process(pid)?)
        }
        Attempt::ParentEnvironment => {
            let parent = rustix::process::getppid().map(rustix::process::Pid::as_raw_nonzero);
            let parent = parent.ok_or_else(|| io::Error::other("no parent"))?;
            read(Path::new(&format!("/proc/{parent}/environ")))
        }
        Attempt::Connect(address) => TcpStream::connect_timeout(address, CONNECT_TIMEOUT).map(drop),
    }
}

fn read(path: &Path) -> io::Result<()> {
    use io::Read as _;
    std::fs::File::open(path)?.read(&mut [0]).map(drop)
}

fn write(directory: &Path) -> io::Result<()> {
    let path = directory.join(PROBE_FILE);
    std::fs::File::create(&path)?;
    std::fs::remove_file(path)
}
