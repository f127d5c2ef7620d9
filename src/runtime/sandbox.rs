//! Sandbox: what an agent's process may reach of the machine.
//!
//! `granted_paths` finds what an agent needs without what it must never reach; `Confinement` is the result,
//! which the supervisor applies to the thread that starts the agent (`restrict_thread`). `kernel_support`
//! says what the running kernel can enforce, `probe` tries it out from inside.

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, remove_capability_from_bounding_set, set_thread_gid, set_thread_groups,
    set_thread_uid,
};
use serde::{Deserialize, Serialize};

pub(super) mod granted_paths;
mod kernel_support;
mod landlock_rules;
pub(super) mod probe;
mod syscall_filter;

pub(crate) use kernel_support::KernelSupport;

use super::process_environment::Account;
use super::supervisor_process::control::{Descriptors, LaunchSpec, StartFailure};

/// Agents and everything that they start give way to the gateway.
pub(super) const NICENESS: i32 = 10;

/// What root may do with files that it can reach; nothing else of its powers is left to an agent.
const KEPT_CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID);

/// What an agent may reach. Everything else is denied, as far as the kernel can.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Confinement {
    /// The agent is not started unless Landlock holds.
    pub(super) is_required: bool,
    /// To read and execute.
    pub(super) read: Vec<PathBuf>,
    /// To read, execute and change, besides the directories that come as descriptors.
    pub(super) write: Vec<PathBuf>,
    pub(super) network: Network,
}

/// What an agent may connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "NetworkForm", into = "NetworkForm")]
pub(super) enum Network {
    #[default]
    Open,
    /// No internet protocol at all.
    None,
    /// TCP ports, on any host.
    Ports(Vec<u16>),
}

/// How it is written: `"open"`, `"none"` or a list of ports.
#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "`network` must be \"open\", \"none\" or a list of TCP ports"
)]
enum NetworkForm {
    Word(NetworkWord),
    Ports(Vec<u16>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NetworkWord {
    Open,
    None,
}

impl From<NetworkForm> for Network {
    fn from(form: NetworkForm) -> Self {
        match form {
            NetworkForm::Word(NetworkWord::Open) => Self::Open,
            NetworkForm::Word(NetworkWord::None) => Self::None,
            NetworkForm::Ports(ports) => Self::Ports(ports),
        }
    }
}

impl From<Network> for NetworkForm {
    fn from(network: Network) -> Self {
        match network {
            Network::Open => Self::Word(NetworkWord::Open),
            Network::None => Self::Word(NetworkWord::None),
            Network::Ports(ports) => Self::Ports(ports),
        }
    }
}

/// Limits that the kernel keeps for each process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessLimits {
    pub(super) open_files: Option<u64>,
    /// The size of a file that it writes.
    pub(super) file_bytes: Option<u64>,
    /// Threads of its system user, those of other programs included. Does not bind root.
    pub(super) user_threads: Option<u64>,
}

/// Restricts the current thread, and with it the processes that it starts. The limits hold for the whole
/// process.
pub(super) fn restrict_thread(
    spec: &LaunchSpec,
    descriptors: &Descriptors,
) -> Result<(), StartFailure> {
    let sandbox = |error: String| StartFailure::Sandbox { message: error };
    // Paths are opened before another user is taken on.
    let rules = match &spec.confinement {
        Some(confinement) => Some(
            landlock_rules::prepare(confinement, descriptors)
                .map_err(|error| sandbox(error.to_string()))?,
        ),
        None => None,
    };
    limit_process(&spec.limits).map_err(|error| sandbox(format!("limits: {error}")))?;
    // Failing leaves it at the gateway's priority.
    rustix::process::nice(NICENESS).ok();
    if spec.confinement.is_some() {
        drop_capabilities();
    }
    if let Some(account) = spec.account {
        become_account(account).map_err(|error| StartFailure::Account {
            message: error.to_string(),
        })?;
    }
    check_directory(&spec.directory)?;
    if let (Some(rules), Some(confinement)) = (rules, &spec.confinement) {
        landlock_rules::enforce(rules, confinement).map_err(|error| sandbox(error.to_string()))?;
        syscall_filter::apply(&confinement.network).map_err(|error| sandbox(error.to_string()))?;
    }
    Ok(())
}

fn limit_process(limits: &ProcessLimits) -> io::Result<()> {
    lower(Resource::Core, 0)?;
    for (resource, limit) in [
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nproc, limits.user_threads),
    ] {
        if let Some(limit) = limit {
            lower(resource, limit)?;
        }
    }
    Ok(())
}

/// Lowers a limit for good; one that is lower already stays.
fn lower(resource: Resource, limit: u64) -> io::Result<()> {
    let known = getrlimit(resource);
    let maximum = known.maximum.map_or(limit, |known| known.min(limit));
    let current = known.current.map_or(maximum, |known| known.min(maximum));
    setrlimit(
        resource,
        Rlimit {
            current: Some(current),
            maximum: Some(maximum),
        },
    )?;
    Ok(())
}

/// Takes root's powers from everything that this thread starts. Others have none.
fn drop_capabilities() {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if !KEPT_CAPABILITIES.contains(capability) {
            // Fails for those that the kernel does not know, and without the right to.
            remove_capability_from_bounding_set(capability).ok();
        }
    }
    rustix::thread::clear_ambient_capability_set().ok();
}

fn become_account(account: Account) -> io::Result<()> {
    set_thread_groups(&[])?;
    set_thread_gid(rustix::process::Gid::from_raw(account.gid))?;
    set_thread_uid(rustix::process::Uid::from_raw(account.uid))?;
    Ok(())
}

/// Checks that the path of the current directory leads to it, for the system user of the agent.
fn check_directory(directory: &Path) -> Result<(), StartFailure> {
    let place = |path: &Path| rustix::fs::stat(path).map(|about| (about.st_dev, about.st_ino));
    let path = directory.display();
    match (place(directory), place(Path::new("."))) {
        (Ok(named), Ok(current)) if named == current => Ok(()),
        (Err(error), _) => Err(StartFailure::Account {
            message: format!("it cannot reach {path} ({error})"),
        }),
        _ => Err(StartFailure::Sandbox {
            message: format!("{path} was replaced during the start"),
        }),
    }
}
