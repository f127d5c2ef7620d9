//! Tests of workspaces: names, symbolic links, and directories given to another system user.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{RenameFlags, renameat_with};

use super::*;

const AGENT: Account = Account {
    uid: 12_345,
    gid: 12_345,
};
const VICTIM: u32 = 23_456;

fn filled(base: &Path, user: &str, account: Option<Account>) -> Result<PathBuf, WorkspaceError> {
    let fill = |part: &str| part.replace("{user}", user).replace("{session}", "ses_1");
    make(base, "spaces/{user}/{session}", fill, account).map(|made| made.path)
}

/// A directory below `/tmp` whose parents every user can pass, and which only root can change. None
/// unless the test runs as root: others cannot give directories away.
fn rooted() -> Option<tempfile::TempDir> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let base = tempfile::tempdir().unwrap();
    std::fs::set_permissions(base.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    Some(base)
}

fn owner(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().uid()
}

#[test]
fn no_name_leads_out_of_the_workspace() {
    let base = tempfile::tempdir().unwrap();
    let root = base.path().canonicalize().unwrap().join("spaces");
    for user in ["ada", "..", ".", "/", "../../etc", "a/b", "", "~", "\0"] {
        let path = filled(base.path(), user, None).unwrap();
        assert!(path.starts_with(&root), "{user:?}: {}", path.display());
        assert!(path.ends_with("ses_1"));
        assert!(path.is_dir());
    }
}

#[test]
fn a_symlink_in_the_place_of_a_name_is_refused() {
    let (base, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let spaces = base.path().join("spaces");
    std::fs::create_dir_all(spaces.join("bob")).unwrap();
    symlink(elsewhere.path(), spaces.join("ada")).unwrap();
    symlink(spaces.join("bob"), spaces.join("eve")).unwrap();
    for user in ["ada", "eve"] {
        let refused = filled(base.path(), user, None);
        assert!(
            matches!(refused, Err(WorkspaceError::Symlink { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn the_operator_may_name_any_directory() {
    let (base, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let pattern = elsewhere.path().join("project");
    let made = make(base.path(), pattern.to_str().unwrap(), str::to_owned, None).unwrap();
    assert_eq!(made.path, pattern.canonicalize().unwrap());
}

#[test]
fn a_directory_is_given_to_the_account_and_what_leads_to_it_is_not() {
    let Some(base) = rooted() else { return };
    let path = filled(base.path(), "ada", Some(AGENT)).unwrap();
    assert_eq!(owner(&path), AGENT.uid);
    for parent in path.ancestors().skip(1).take(3) {
        assert_eq!(owner(parent), 0, "{}", parent.display());
    }
    let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    // Once more, as at the next start.
    assert_eq!(filled(base.path(), "ada", Some(AGENT)).unwrap(), path);
}

#[test]
fn a_directory_of_another_user_is_not_given_away() {
    let Some(base) = rooted() else { return };
    let path = filled(base.path(), "ada", Some(AGENT)).unwrap();
    chown(&path, Some(VICTIM), Some(VICTIM)).unwrap();
    let refused = filled(base.path(), "ada", Some(AGENT));
    assert!(
        matches!(refused, Err(WorkspaceError::OtherOwner { .. })),
        "{refused:?}"
    );
    assert_eq!(owner(&path), VICTIM);
}

#[test]
fn a_parent_that_the_account_can_change_is_refused() {
    let Some(base) = rooted() else { return };
    let spaces = base.path().join("spaces");
    std::fs::create_dir(&spaces).unwrap();
    for (uid, gid, mode) in [
        (AGENT.uid, 0, 0o755),
        (0, AGENT.gid, 0o775),
        (0, 0, 0o777),
        (AGENT.uid, 0, 0o1777),
    ] {
        chown(&spaces, Some(uid), Some(gid)).unwrap();
        std::fs::set_permissions(&spaces, std::fs::Permissions::from_mode(mode)).unwrap();
        let refused = filled(base.path(), "ada", Some(AGENT));
        let is_refused = matches!(refused, Err(WorkspaceError::ParentWritable { .. }));
        assert!(is_refused, "{uid} {gid} {mode:o}: {refused:?}");
    }
    chown(&spaces, Some(0), Some(0)).unwrap();
    // Others cannot replace what root made in a directory with the sticky bit.
    std::fs::set_permissions(&spaces, std::fs::Permissions::from_mode(0o1777)).unwrap();
    assert!(filled(base.path(), "ada", Some(AGENT)).is_ok());
    // What the account made there itself is no parent.
    std::fs::create_dir(spaces.join("bob")).unwrap();
    chown(spaces.join("bob"), Some(AGENT.uid), Some(AGENT.gid)).unwrap();
    let refused = filled(base.path(), "bob", Some(AGENT));
    assert!(
        matches!(refused, Err(WorkspaceError::ParentWritable { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_symlink_of_the_account_in_the_fixed_part_is_refused_and_one_of_root_followed() {
    let Some(base) = rooted() else { return };
    let real = base.path().join("real");
    std::fs::create_dir(&real).unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o755)).unwrap();
    let link = base.path().join("spaces");
    symlink("real/../real", &link).unwrap();
    let path = filled(base.path(), "ada", Some(AGENT)).unwrap();
    assert_eq!(path, real.canonicalize().unwrap().join("ada/ses_1"));
    std::os::unix::fs::lchown(&link, Some(AGENT.uid), Some(AGENT.gid)).unwrap();
    assert!(filled(base.path(), "bob", Some(AGENT)).is_err());
    assert!(!real.join("bob").exists());
}

/// A process that exchanges a directory and a symbolic link while workspaces are made.
#[test]
fn a_directory_exchanged_for_a_symlink_during_the_start_gives_nothing_away() {
    let Some(base) = rooted() else { return };
    let outside = base.path().join("outside");
    std::fs::create_dir_all(outside.join("ses_1")).unwrap();
    let spaces = base.path().join("spaces");
    std::fs::create_dir_all(spaces.join("ada")).unwrap();
    symlink(&outside, spaces.join("trap")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (one, other) = (spaces.join("ada"), spaces.join("trap"));
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let mut made = 0;
        for _ in 0..5_000 {
            made += usize::from(filled(base.path(), "ada", Some(AGENT)).is_ok());
        }
        stop.store(true, Ordering::Relaxed);
        assert_ne!(made, 0, "the race was never won by the directory");
        assert_ne!(made, 5_000, "the link was never met");
    });
    assert_eq!(owner(&outside), 0);
    assert_eq!(owner(&outside.join("ses_1")), 0);
}
