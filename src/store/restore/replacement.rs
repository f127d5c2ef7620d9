//! Replacement: swaps the files of a data directory in resumable steps.
//!
//! Several files cannot be swapped atomically. A marker file exists from the first step to the
//! last, and while it does nothing opens the database. It lists what is moved aside and where.
//! After an interruption all old files end up in one directory and the restore can be repeated.
//! Every step is idempotent and durable before the next one starts.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jiff::{Timestamp, ToSpan as _};
use serde::{Deserialize, Serialize};

use crate::store::blobs::Blobs;

const MARKER: &str = "restore.unfinished";
const DATABASE: &str = "switchboard.db";
const SIDE_FILES: [&str; 3] = [
    "switchboard.db-wal",
    "switchboard.db-shm",
    "switchboard.db-journal",
];
const ATTACHMENTS: &str = "attachments";
const STAGED_SUFFIX: &str = ".restoring";

pub(super) fn staged_database(dir: &Path) -> PathBuf {
    dir.join(format!("{DATABASE}{STAGED_SUFFIX}"))
}

pub(super) fn staged_files(dir: &Path) -> PathBuf {
    dir.join(format!("{ATTACHMENTS}{STAGED_SUFFIX}"))
}

/// Was a restore interrupted in this directory after its first step?
pub(in super::super) fn is_unfinished(dir: &Path) -> bool {
    dir.join(MARKER).exists()
}

/// What is moved aside, and where. The field names are stored in the marker.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Replacement {
    /// Name of the directory for the old files.
    aside: String,
    leaving: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// From here on nothing opens the database.
    WriteMarker,
    CreateAside,
    MoveAside(&'a str),
    MoveInFiles,
    /// After the uploaded files: a database in place is complete.
    MoveInDatabase,
    RemoveMarker,
}

impl Replacement {
    /// Plans for the existing files. An empty attachments directory is simply removed.
    pub(super) fn plan(dir: &Path, mut now: Timestamp) -> io::Result<Self> {
        let names = std::iter::once(DATABASE).chain(SIDE_FILES);
        let mut leaving: Vec<String> = names
            .filter(|name| dir.join(name).exists())
            .map(str::to_owned)
            .collect();
        let attachments = dir.join(ATTACHMENTS);
        if attachments.exists() {
            if Blobs::is_empty(&attachments)? && leaving.is_empty() {
                fs::remove_dir_all(attachments)?;
            } else {
                leaving.push(ATTACHMENTS.to_owned());
            }
        }
        loop {
            let aside = format!("replaced-{}", now.strftime("%Y%m%dT%H%M%S%3fZ"));
            if !dir.join(&aside).exists() {
                return Ok(Self { aside, leaving });
            }
            now += 1.millisecond();
        }
    }

    pub(super) fn unfinished(dir: &Path) -> io::Result<Option<Self>> {
        match fs::read(dir.join(MARKER)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Directory for the old files; `None` if there are none.
    pub(super) fn aside(&self, dir: &Path) -> Option<PathBuf> {
        (!self.leaving.is_empty()).then(|| dir.join(&self.aside))
    }

    pub(super) fn steps(&self) -> Vec<Step<'_>> {
        let mut steps = vec![Step::WriteMarker];
        if !self.leaving.is_empty() {
            steps.push(Step::CreateAside);
        }
        steps.extend(self.leaving.iter().map(|name| Step::MoveAside(name)));
        steps.extend([Step::MoveInFiles, Step::MoveInDatabase, Step::RemoveMarker]);
        steps
    }

    pub(super) fn run(&self, step: &Step<'_>, dir: &Path) -> io::Result<()> {
        match step {
            Step::WriteMarker => self.write_marker(dir)?,
            Step::CreateAside => {
                let aside = dir.join(&self.aside);
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(aside)?;
            }
            Step::MoveAside(name) => {
                let aside = dir.join(&self.aside);
                let (from, to) = (dir.join(name), aside.join(name));
                // If it was moved before, the file of that name here is the new one.
                if !to.exists() && from.exists() {
                    fs::rename(from, to)?;
                }
                sync(&aside)?;
            }
            Step::MoveInFiles => move_in(&staged_files(dir), &dir.join(ATTACHMENTS))?,
            Step::MoveInDatabase => move_in(&staged_database(dir), &dir.join(DATABASE))?,
            Step::RemoveMarker => fs::remove_file(dir.join(MARKER))?,
        }
        sync(dir)
    }

    /// Finishes moving the old files aside and deletes staged files of an incomplete database. The
    /// marker stays for the next restore to remove.
    pub(super) fn abandon(&self, dir: &Path) -> io::Result<()> {
        for step in self.steps() {
            if matches!(step, Step::CreateAside | Step::MoveAside(_)) {
                self.run(&step, dir)?;
            }
        }
        let files = dir.join(ATTACHMENTS);
        if !dir.join(DATABASE).exists() && files.exists() {
            fs::remove_dir_all(files)?;
        }
        sync(dir)
    }

    fn write_marker(&self, dir: &Path) -> io::Result<()> {
        let temporary = dir.join(format!("{MARKER}.new"));
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        fs::rename(temporary, dir.join(MARKER))
    }
}

/// Deletes staged files, also those SQLite left beside them, which it would take for part of the
/// next database.
pub(super) fn remove_staged(dir: &Path) -> io::Result<()> {
    let database = staged_database(dir);
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut file = database.clone().into_os_string();
        file.push(ending);
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let files = staged_files(dir);
    if files.exists() {
        fs::remove_dir_all(files)?;
    }
    sync(dir)
}

/// Makes renames in a directory durable.
pub(super) fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn move_in(staged: &Path, destination: &Path) -> io::Result<()> {
    if staged.exists() {
        fs::rename(staged, destination)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data directory with these files and a staged replacement.
    fn data_dir(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in files {
            write_file(&dir.path().join(name), "old");
        }
        stage(dir.path(), "new");
        dir
    }

    fn stage(dir: &Path, text: &str) {
        remove_staged(dir).unwrap();
        write_file(&staged_database(dir), text);
        write_file(&staged_files(dir).join("ab/abcd"), text);
    }

    fn write_file(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The common content of those files; `None` if they differ.
    fn content_of(dir: &Path, names: &[&str]) -> Option<String> {
        let text = |name| fs::read_to_string(dir.join(name)).ok();
        let first = text(names.first()?)?;
        let all = names.iter().all(|name| text(name).as_ref() == Some(&first));
        all.then_some(first)
    }

    const NEW: [&str; 2] = [DATABASE, "attachments/ab/abcd"];
    const OLD: [&str; 4] = [
        DATABASE,
        SIDE_FILES[0],
        SIDE_FILES[1],
        "attachments/ab/abcd",
    ];

    /// The restore that an operator runs after an interrupted one.
    fn restore_again(dir: &Path, text: &str) -> Replacement {
        if let Some(former) = Replacement::unfinished(dir).unwrap() {
            former.abandon(dir).unwrap();
        }
        stage(dir, text);
        let next = Replacement::plan(dir, Timestamp::UNIX_EPOCH).unwrap();
        for step in next.steps() {
            next.run(&step, dir).unwrap();
        }
        next
    }

    #[test]
    fn an_interrupted_restore_keeps_the_old_files_together_and_can_be_repeated() {
        let steps = {
            let dir = data_dir(&OLD);
            let plan = Replacement::plan(dir.path(), Timestamp::UNIX_EPOCH).unwrap();
            plan.steps().len()
        };
        assert_eq!(steps, 9);
        for taken in 0..=steps {
            let dir = data_dir(&OLD);
            let dir = dir.path();
            let plan = Replacement::plan(dir, Timestamp::UNIX_EPOCH).unwrap();
            for step in plan.steps().iter().take(taken) {
                plan.run(step, dir).unwrap();
                // Repeated, as after a crash in the middle of the step.
                if *step != Step::RemoveMarker {
                    plan.run(step, dir).unwrap();
                }
            }
            if !is_unfinished(dir) {
                let whole = if taken == 0 {
                    content_of(dir, &OLD)
                } else {
                    content_of(dir, &NEW)
                };
                let expected = if taken == 0 { "old" } else { "new" };
                assert_eq!(whole.as_deref(), Some(expected), "{taken}");
            }
            let next = restore_again(dir, "newer");
            assert!(!is_unfinished(dir), "{taken}");
            assert_eq!(content_of(dir, &NEW).as_deref(), Some("newer"), "{taken}");
            assert!(
                !dir.join(SIDE_FILES[0]).exists(),
                "{taken}: a log of another"
            );
            let first = plan.aside(dir).unwrap();
            let whole = [Some(first), next.aside(dir)];
            let mut asides = whole.iter().flatten().filter(|aside| aside.exists());
            assert!(
                asides.any(|aside| content_of(aside, &OLD).as_deref() == Some("old")),
                "{taken}: what was there is in one place"
            );
        }
    }

    #[test]
    fn a_restore_interrupted_twice_loses_nothing() {
        let count = 9;
        for (first, second) in (1..count).flat_map(|one| (1..count).map(move |two| (one, two))) {
            let dir = data_dir(&OLD);
            let dir = dir.path();
            let plan = Replacement::plan(dir, Timestamp::UNIX_EPOCH).unwrap();
            for step in plan.steps().iter().take(first) {
                plan.run(step, dir).unwrap();
            }
            Replacement::unfinished(dir)
                .unwrap()
                .unwrap()
                .abandon(dir)
                .unwrap();
            stage(dir, "newer");
            let plan = Replacement::plan(dir, Timestamp::UNIX_EPOCH).unwrap();
            for step in plan.steps().iter().take(second) {
                plan.run(step, dir).unwrap();
            }
            restore_again(dir, "newest");
            assert_eq!(content_of(dir, &NEW).as_deref(), Some("newest"));
            let asides = fs::read_dir(dir)
                .unwrap()
                .map(|entry| entry.unwrap().path());
            let old = asides.filter(|path| content_of(path, &OLD).as_deref() == Some("old"));
            assert_eq!(old.count(), 1, "{first} {second}");
        }
    }

    #[test]
    fn into_an_empty_directory_nothing_is_moved_aside() {
        for taken in 0..=4 {
            let dir = data_dir(&[]);
            let dir = dir.path();
            fs::create_dir_all(dir.join("attachments/ab")).unwrap();
            let plan = Replacement::plan(dir, Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(plan.aside(dir), None);
            for step in plan.steps().iter().take(taken) {
                plan.run(step, dir).unwrap();
            }
            restore_again(dir, "newer");
            assert_eq!(content_of(dir, &NEW).as_deref(), Some("newer"), "{taken}");
        }
    }
}
