//! Agent memory: what an agent keeps beside its socket, copied for a branch of its session.
//!
//! The agent of the original session can write there: no link of it is followed, and only plain files
//! are copied.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{Dir, FileType, Mode, OFlags, fstat, open, openat};

/// The folder in which the nous core keeps its conversations.
const MEMORY_DIR: &str = "sessions";
/// What is beyond this is not copied.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Copies the memory in one directory to another one, unless there is one already.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let target = to.join(MEMORY_DIR);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = open(
        from.join(MEMORY_DIR),
        flags | OFlags::DIRECTORY,
        Mode::empty(),
    );
    let source = match opened {
        Err(_) if target.exists() => return Ok(()),
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    if target.exists() {
        return Ok(());
    }
    DirBuilder::new().mode(0o700).create(&target)?;
    let mut left = MAX_BYTES;
    for entry in Dir::read_from(&source)? {
        let entry = entry?;
        let Ok(file) = openat(&source, entry.file_name(), flags, Mode::empty()) else {
            continue;
        };
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
            continue;
        }
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let mut options = File::options();
        options.create_new(true).write(true).mode(0o600);
        let mut copied = options.open(target.join(name))?;
        left -= io::copy(&mut File::from(file).take(left), &mut copied)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_gets_the_files_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let memory = from.join(MEMORY_DIR);
        std::fs::create_dir_all(&memory).unwrap();
        std::fs::create_dir(&to).unwrap();
        std::fs::write(dir.path().join("secret"), "a key").unwrap();
        std::fs::write(memory.join("sess-1.jsonl"), "{}").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), memory.join("link")).unwrap();
        copy(&from, &to).unwrap();
        let names = |path: &Path| -> Vec<_> {
            let entries = std::fs::read_dir(path).unwrap();
            entries.map(|entry| entry.unwrap().file_name()).collect()
        };
        assert_eq!(names(&to.join(MEMORY_DIR)), ["sess-1.jsonl"]);
        // What the branch says later is not overwritten.
        std::fs::write(to.join(MEMORY_DIR).join("sess-1.jsonl"), "{}\n{}").unwrap();
        copy(&from, &to).unwrap();
        let kept = std::fs::read_to_string(to.join(MEMORY_DIR).join("sess-1.jsonl")).unwrap();
        assert_eq!(kept, "{}\n{}");
        // A link in place of the folder is not followed either.
        let (linked, other) = (dir.path().join("linked"), dir.path().join("other"));
        std::fs::create_dir(&linked).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&memory, linked.join(MEMORY_DIR)).unwrap();
        assert!(copy(&linked, &other).is_err());
        assert!(names(&other).is_empty());
    }
}
