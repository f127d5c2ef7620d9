//! Workspace: creates an agent's working directory, inside the configured root and nowhere else.
//!
//! The part of the path that is made of names (of users and sessions) is walked on descriptors, without
//! following a symbolic link. A directory that is given to another system user has no parent that this
//! user could change, so that what was checked is what is given away.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, Stat, Uid, fchown, fgetxattr, fstat, mkdirat,
    openat2, statat,
};
use rustix::io::Errno;

use super::process_environment::{Account, supplementary_groups};

/// As many as the kernel follows.
const MAX_SYMLINKS: usize = 40;
const PRIVATE: Mode = Mode::RWXU;
/// Of a directory between the root and the last one, if another system user must pass it.
const PASSABLE: Mode = Mode::from_raw_mode(0o711);

#[derive(Debug, thiserror::Error)]
pub(super) enum WorkspaceError {
    #[error("the working directory {} cannot be made: {source}", .path.display())]
    Make { path: PathBuf, source: io::Error },
    #[error(
        "{} leads through a symbolic link, or is no directory: remove what is there", .path.display()
    )]
    Symlink { path: PathBuf },
    #[error(
        "{} can be changed by the user that the agent runs as: give it to root and let only root write \
         there, or choose another `workspace`", .path.display()
    )]
    ParentWritable { path: PathBuf },
    #[error("{} belongs to another user than the one that the agent runs as: give it back", .path.display())]
    OtherOwner { path: PathBuf },
}

/// A working directory, open.
#[derive(Debug)]
pub(super) struct Workspace {
    pub(super) path: PathBuf,
    /// The directory that was checked, also if the path leads elsewhere meanwhile.
    pub(super) directory: OwnedFd,
}

/// Creates the directory of a pattern such as `workspaces/{user}/{session}`, below `base` if it is
/// relative, and gives it to `account`. No name can lead out of the fixed part of the pattern, before
/// the first placeholder.
pub(super) fn make(
    base: &Path,
    pattern: &str,
    fill: impl Fn(&str) -> String,
    account: Option<Account>,
) -> Result<Workspace, WorkspaceError> {
    let mut root = base.to_path_buf();
    let mut names: Vec<String> = Vec::new();
    for part in Path::new(pattern).components() {
        let name = part.as_os_str().to_string_lossy();
        if names.is_empty() && !name.contains('{') {
            root.push(part);
        } else {
            names.push(safe(&fill(&name)));
        }
    }
    let walk = Walk { account };
    let (mut path, mut directory) = walk.root(&root)?;
    let last = names.len();
    for (place, name) in names.iter().enumerate() {
        walk.check_parent(&path, &directory)?;
        path.push(name);
        let mode = match account {
            Some(_) if place + 1 < last => PASSABLE,
            _ => PRIVATE,
        };
        directory = step(&directory, name, mode).map_err(|error| named(&path, error))?;
    }
    if let Some(account) = account {
        hand_over(&path, &directory, account)?;
    }
    Ok(Workspace { path, directory })
}

/// Opens a directory that is there already.
pub(super) fn open_existing(path: &Path) -> Result<Workspace, WorkspaceError> {
    let failed = |source| WorkspaceError::Make {
        path: path.to_owned(),
        source,
    };
    let path = path.canonicalize().map_err(failed)?;
    let directory =
        open(CWD, &path, ResolveFlags::NO_SYMLINKS).map_err(|error| named(&path, error))?;
    Ok(Workspace { path, directory })
}

/// The way to a directory, for the agents of one system user.
#[derive(Clone, Copy)]
struct Walk {
    account: Option<Account>,
}

impl Walk {
    /// Opens the fixed part of the pattern, made if it is missing. The operator named it, so symbolic
    /// links are followed; with an account, only where that user cannot have put them.
    fn root(self, root: &Path) -> Result<(PathBuf, OwnedFd), WorkspaceError> {
        let failed = |source| WorkspaceError::Make {
            path: root.to_owned(),
            source,
        };
        if self.account.is_none() {
            create(root).map_err(failed)?;
            let Workspace { path, directory } = open_existing(root)?;
            return Ok((path, directory));
        }
        let mut path = PathBuf::from("/");
        let mut directory =
            open(CWD, &path, ResolveFlags::empty()).map_err(|error| named(&path, error))?;
        // The last one is the next step.
        let mut steps: Vec<PathBuf> = reversed(root);
        let mut links = 0;
        while let Some(name) = steps.pop() {
            self.check_parent(&path, &directory)?;
            let next = path.join(&name);
            match rustix::fs::readlinkat(&directory, &name, Vec::new()) {
                Ok(target) if links < MAX_SYMLINKS && is_trusted_link(&directory, &name) => {
                    links += 1;
                    let target = PathBuf::from(target.to_string_lossy().into_owned());
                    if target.is_absolute() {
                        path = PathBuf::from("/");
                        directory = open(CWD, &path, ResolveFlags::empty())
                            .map_err(|error| named(&next, error))?;
                    }
                    steps.extend(reversed(&target));
                    continue;
                }
                Ok(_) => return Err(named(&next, Errno::LOOP)),
                Err(_) => {}
            }
            directory = if name.as_os_str() == ".." {
                let up = open(&directory, &name, ResolveFlags::NO_SYMLINKS);
                path.pop();
                up.map_err(|error| named(&path, error))?
            } else {
                let down = step(&directory, &name, PASSABLE);
                path = next;
                down.map_err(|error| named(&path, error))?
            };
        }
        Ok((path, directory))
    }

    /// Refuses a directory in which the account could put something else in the place of what we use.
    fn check_parent(self, path: &Path, directory: &OwnedFd) -> Result<(), WorkspaceError> {
        let Some(account) = self.account else {
            return Ok(());
        };
        let about = fstat(directory).map_err(|error| named(path, error))?;
        // The mask of an access list stands in the place of the group's rights.
        let mut list = [0_u8; 1024];
        let is_listed = about.st_mode & Mode::WGRP.as_raw_mode() != 0
            && fgetxattr(directory, "system.posix_acl_access", &mut list)
                .is_ok_and(|bytes| bytes > 0);
        if is_listed || can_change_entries(&about, account, &groups_of(account)) {
            return Err(WorkspaceError::ParentWritable {
                path: path.to_owned(),
            });
        }
        Ok(())
    }
}

/// Whether root or the gateway made a symbolic link.
fn is_trusted_link(directory: &OwnedFd, name: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let about = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    about.is_ok_and(|about| about.st_uid == 0 || about.st_uid == own)
}

/// Whether a user can rename or replace the entries of others in a directory. In a directory with the
/// sticky bit only the owners of directory and entry can; what we find there is checked by its own
/// owner.
fn can_change_entries(about: &Stat, account: Account, groups: &[u32]) -> bool {
    let mode = Mode::from_raw_mode(about.st_mode);
    if about.st_uid == account.uid {
        return true;
    }
    let is_member = about.st_gid == account.gid || groups.contains(&about.st_gid);
    // Their processes may have left a group.
    let writes = mode.contains(Mode::WOTH) || is_member && mode.contains(Mode::WGRP);
    writes && !mode.contains(Mode::SVTX)
}

/// The further groups of an account. Unreadable files name none, as for the programs that change users.
fn groups_of(account: Account) -> Vec<u32> {
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    supplementary_groups(&read("/etc/passwd"), &read("/etc/group"), account)
}

/// Gives a directory to the account: one that was ours, or is theirs already.
fn hand_over(path: &Path, directory: &OwnedFd, account: Account) -> Result<(), WorkspaceError> {
    let about = fstat(directory).map_err(|error| named(path, error))?;
    let own = rustix::process::geteuid().as_raw();
    if about.st_uid != own && about.st_uid != account.uid {
        return Err(WorkspaceError::OtherOwner {
            path: path.to_owned(),
        });
    }
    if (about.st_uid, about.st_gid) == (account.uid, account.gid) {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    fchown(directory, Some(uid), Some(gid)).map_err(|error| named(path, error))
}

/// Creates one directory, if it is missing, and opens it.
fn step(parent: impl AsFd, name: impl AsRef<Path>, mode: Mode) -> Result<OwnedFd, Errno> {
    let name = name.as_ref();
    match mkdirat(&parent, name, mode) {
        Ok(()) | Err(Errno::EXIST) => {}
        // A file system that is not writable may hold the directory.
        Err(error) => {
            return open(
                &parent,
                name,
                ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
            )
            .map_err(|_| error);
        }
    }
    open(
        &parent,
        name,
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    )
}

fn open(parent: impl AsFd, name: &Path, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(parent, name, flags, Mode::empty(), resolve)
}

fn named(path: &Path, error: Errno) -> WorkspaceError {
    let path = path.to_owned();
    match error {
        Errno::LOOP | Errno::NOTDIR | Errno::XDEV => WorkspaceError::Symlink { path },
        error => WorkspaceError::Make {
            path,
            source: error.into(),
        },
    }
}

/// The steps of a path, the last one first.
fn reversed(path: &Path) -> Vec<PathBuf> {
    let steps = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut steps: Vec<PathBuf> = steps.collect();
    steps.reverse();
    steps
}

fn create(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A name as exactly one component of a path.
fn safe(name: &str) -> String {
    let is_safe =
        |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | '@');
    let name: String = name
        .chars()
        .map(|letter| if is_safe(letter) { letter } else { '_' })
        .collect();
    match Path::new(&name).components().next() {
        Some(Component::Normal(_)) => name,
        _ => "_".into(),
    }
}

#[cfg(test)]
mod tests;
