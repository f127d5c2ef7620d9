//! Landlock rules: files, TCP ports, signals and abstract sockets, as far as the kernel can.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort,
    PathBeneath, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope,
};
use rustix::fs::{FileType, Mode, OFlags};

use super::{Confinement, Network};
use crate::runtime::supervisor_process::control::Descriptors;

/// The newest that is used; older kernels enforce what they know.
const ABI_USED: ABI = ABI::V9;

/// Devices without a state that others could see, and terminals of the agent's own.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

#[derive(Debug, thiserror::Error)]
pub(super) enum LandlockError {
    #[error("Landlock: {0}")]
    Ruleset(#[from] RulesetError),
    #[error(
        "`sandbox` is \"required\", but this kernel does not enforce Landlock: enable it (`lsm=landlock,…` \
         on its command line, Linux 5.13 or later), or choose `sandbox = \"auto\"`"
    )]
    Unavailable,
    #[error("{} cannot be opened: {source}", .path.display())]
    Open {
        path: PathBuf,
        source: rustix::io::Errno,
    },
}

/// Opens everything that the agent may reach. A path that does not exist, or that cannot be opened, is
/// left out.
pub(super) fn prepare(
    confinement: &Confinement,
    descriptors: &Descriptors,
) -> Result<RulesetCreated, LandlockError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI_USED))?
        .scope(Scope::from_all(ABI_USED))?;
    if confinement.network != Network::Open {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    if confinement.network == Network::None {
        ruleset = ruleset.handle_access(AccessNet::BindTcp)?;
    }
    let mut created = ruleset.create()?;
    if let Network::Ports(ports) = &confinement.network {
        for port in ports {
            created = created.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    let (read, all) = (AccessFs::from_read(ABI_USED), AccessFs::from_all(ABI_USED));
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    for path in &confinement.read {
        created = add_path(created, path, read)?;
    }
    for path in &confinement.write {
        created = add_path(created, path, all)?;
    }
    for path in DEVICES {
        created = add_path(created, Path::new(path), device | AccessFs::ReadDir)?;
    }
    let own = std::iter::once(&descriptors.directory).chain(&descriptors.writable);
    for directory in own {
        created = created.add_rule(PathBeneath::new(directory.as_fd(), all))?;
    }
    Ok(created)
}

/// Restricts the current thread for good.
pub(super) fn enforce(
    ruleset: RulesetCreated,
    confinement: &Confinement,
) -> Result<(), LandlockError> {
    let status = ruleset.restrict_self()?;
    if confinement.is_required && status.ruleset == RulesetStatus::NotEnforced {
        return Err(LandlockError::Unavailable);
    }
    Ok(())
}

fn add_path(
    ruleset: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, LandlockError> {
    match open(path) {
        Ok(Some((opened, kind))) => {
            let file = AccessFs::from_file(ABI_USED) & !AccessFs::ResolveUnix;
            let access = match kind {
                FileType::Directory => access,
                FileType::Socket => access & file | AccessFs::ResolveUnix,
                _ => access & file,
            };
            Ok(ruleset.add_rule(PathBeneath::new(opened, access))?)
        }
        Ok(None) => Ok(ruleset),
        Err(source) => Err(LandlockError::Open {
            path: path.to_owned(),
            source,
        }),
    }
}

/// A path opened for a rule, and its kind; none if this user cannot reach it anyway.
fn open(path: &Path) -> rustix::io::Result<Option<(OwnedFd, FileType)>> {
    use rustix::io::Errno;
    let opened = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    match opened {
        Ok(opened) => {
            let kind = FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode);
            Ok(Some((opened, kind)))
        }
        Err(Errno::NOENT | Errno::ACCESS | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}
