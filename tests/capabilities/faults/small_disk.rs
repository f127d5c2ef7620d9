//! Small disk: a tmpfs of one test that can be filled up.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// Enough for a gateway with a few sessions.
const SIZE: &str = "size=6m";

/// A mounted disk; unmounted when dropped.
pub(super) struct SmallDisk {
    /// Beside the mount: the gateway's log must still be written when the disk is full.
    dir: TempDir,
}

impl SmallDisk {
    pub(super) fn mount() -> Self {
        let disk = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(disk.path()).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", SIZE, "switchboard-test"])
            .arg(disk.path())
            .output()
            .unwrap();
        assert!(
            mounted.status.success(),
            "this test mounts a small disk, which needs the rights of root: {}",
            String::from_utf8_lossy(&mounted.stderr)
        );
        disk
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("disk")
    }

    /// Leaves only so many bytes free.
    pub(super) fn fills_up_to(&self, free: u64) {
        let disk = rustix::fs::statvfs(self.path()).unwrap();
        let now = disk.f_bavail * disk.f_frsize;
        let filling = vec![b'x'; usize::try_from(now.saturating_sub(free)).unwrap()];
        std::fs::write(self.path().join("filling"), filling).unwrap();
    }

    /// Writes until nothing more fits.
    pub(super) fn fills_up(&self) {
        let mut file = File::create(self.path().join("filling")).unwrap();
        let mut size = 64 * 1024;
        while size > 0 {
            match file.write(&vec![b'x'; size]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => size /= 2,
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(super) fn is_emptied(&self) {
        std::fs::remove_file(self.path().join("filling")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.path()).status();
        let is_gone = unmounted.is_ok_and(|status| status.success());
        assert!(is_gone || std::thread::panicking(), "still mounted");
    }
}
