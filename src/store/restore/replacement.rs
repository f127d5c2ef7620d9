//! Taking the place of what is there, step by step.
//!
//! Files cannot be exchanged all at once. So a marker stands from the first step to the last, and while
//! it does nothing opens the database. It says what leaves and where to: broken off anywhere, all of
//! what was there comes together in one place, and the restore can be asked for again. Every step can be
//! taken twice, and is on the disk before the next one begins.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jiff::{Timestamp, ToSpan as _};
use serde::{Deserialize, Serialize};

use crate::store::contents::Contents;

const MARKER: &str = "restore.unfinished";
const DATABASE: &str = "switchboard.db";
/// What may stand beside the database, and belongs to it.
const LOGS: [&str; 3] = [
    "switchboard.db-wal",
    "switchboard.db-shm",
    "switchboard.db-journal",
];
const ATTACHMENTS: &str = "attachments";
/// What is made ready beside its place.
const READY: &str = ".restoring";

/// Where the database is made ready.
pub(super) fn ready_database(dir: &Path) -> PathBuf {
    dir.join(format!("{DATABASE}{READY}"))
}

/// Where the uploaded files are made ready.
pub(super) fn ready_files(dir: &Path) -> PathBuf {
    dir.join(format!("{ATTACHMENTS}{READY}"))
}

/// Was a restore broken off in this directory after it had begun to take its place?
pub(in super::super) fn is_unfinished(dir: &Path) -> bool {
    dir.join(MARKER).exists()
}

/// What leaves, and where to.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Replacement {
    /// A directory in the data directory.
    aside: String,
    leaving: Vec<String>,
}

/// One step; whole by itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// From here on nothing opens the database.
    Announce,
    MakeRoom,
    Leave(&'a str),
    BringFiles,
    /// After the files: a database in place is one that is complete.
    BringDatabase,
    Conclude,
}

impl Replacement {
    /// For what is there now. A directory without a file in it is nothing, and goes.
    pub(super) fn plan(dir: &Path, mut now: Timestamp) -> io::Result<Self> {
        let names = std::iter::once(DATABASE).chain(LOGS);
        let mut leaving: Vec<String> = names
            .filter(|name| dir.join(name).exists())
            .map(str::to_owned)
            .collect();
        let attachments = dir.join(ATTACHMENTS);
        if attachments.exists() {
            if Contents::is_empty(&attachments)? && leaving.is_empty() {
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

    /// The one that was broken off here, if any.
    pub(super) fn unfinished(dir: &Path) -> io::Result<Option<Self>> {
        match fs::read(dir.join(MARKER)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where that goes which is there; `None` if nothing is.
    pub(super) fn aside(&self, dir: &Path) -> Option<PathBuf> {
        (!self.leaving.is_empty()).then(|| dir.join(&self.aside))
    }

    /// All that is to be done, in order.
    pub(super) fn steps(&self) -> Vec<Step<'_>> {
        let mut steps = vec![Step::Announce];
        if !self.leaving.is_empty() {
            steps.push(Step::MakeRoom);
        }
        steps.extend(self.leaving.iter().map(|name| Step::Leave(name)));
        steps.extend([Step::BringFiles, Step::BringDatabase, Step::Conclude]);
        steps
    }

    pub(super) fn take(&self, step: &Step<'_>, dir: &Path) -> io::Result<()> {
        match step {
            Step::Announce => self.announce(dir)?,
            Step::MakeRoom => {
                let aside = dir.join(&self.aside);
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(aside)?;
            }
            Step::Leave(name) => {
                let aside = dir.join(&self.aside);
                let (from, to) = (dir.join(name), aside.join(name));
                // If it has left, what has its name here now is not it.
                if !to.exists() && from.exists() {
                    fs::rename(from, to)?;
                }
                sync(&aside)?;
            }
            Step::BringFiles => bring(&ready_files(dir), &dir.join(ATTACHMENTS))?,
            Step::BringDatabase => bring(&ready_database(dir), &dir.join(DATABASE))?,
            Step::Conclude => fs::remove_file(dir.join(MARKER))?,
        }
        sync(dir)
    }

    /// Brings together what was there before this one was broken off, and takes away what never was a
    /// whole database. The marker stays: that is for the next one to take away.
    pub(super) fn break_off(&self, dir: &Path) -> io::Result<()> {
        for step in self.steps() {
            if matches!(step, Step::MakeRoom | Step::Leave(_)) {
                self.take(&step, dir)?;
            }
        }
        let files = dir.join(ATTACHMENTS);
        if !dir.join(DATABASE).exists() && files.exists() {
            fs::remove_dir_all(files)?;
        }
        sync(dir)
    }

    fn announce(&self, dir: &Path) -> io::Result<()> {
        let draft = dir.join(format!("{MARKER}.new"));
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        fs::rename(draft, dir.join(MARKER))
    }
}

/// Takes away what was made ready and not used: also what SQLite had put beside it, which it would
/// take for a part of the next one.
pub(super) fn clear(dir: &Path) -> io::Result<()> {
    let database = ready_database(dir);
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut file = database.clone().into_os_string();
        file.push(ending);
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let files = ready_files(dir);
    if files.exists() {
        fs::remove_dir_all(files)?;
    }
    sync(dir)
}

/// Sees to it that the names in a directory survive a power cut.
pub(super) fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn bring(ready: &Path, place: &Path) -> io::Result<()> {
    if ready.exists() {
        fs::rename(ready, place)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data directory with something in it, and something ready to take its place.
    fn data(there: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in there {
            put(&dir.path().join(name), "old");
        }
        make_ready(dir.path(), "new");
        dir
    }

    fn make_ready(dir: &Path, text: &str) {
        clear(dir).unwrap();
        put(&ready_database(dir), text);
        put(&ready_files(dir).join("ab/abcd"), text);
    }

    fn put(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// What stands under those names: `None` if not all of it says the same.
    fn says(dir: &Path, names: &[&str]) -> Option<String> {
        let text = |name| fs::read_to_string(dir.join(name)).ok();
        let first = text(names.first()?)?;
        let all = names.iter().all(|name| text(name).as_ref() == Some(&first));
        all.then_some(first)
    }

    const NEW: [&str; 2] = [DATABASE, "attachments/ab/abcd"];
    const OLD: [&str; 4] = [DATABASE, LOGS[0], LOGS[1], "attachments/ab/abcd"];

    /// The restore that an operator asks for after one that was broken off.
    fn again(dir: &Path, text: &str) -> Replacement {
        if let Some(former) = Replacement::unfinished(dir).unwrap() {
            former.break_off(dir).unwrap();
        }
        make_ready(dir, text);
        let next = Replacement::plan(dir, Timestamp::UNIX_EPOCH).unwrap();
        for step in next.steps() {
            next.take(&step, dir).unwrap();
        }
        next
    }

    #[test]
    fn broken_off_after_any_step_the_old_stays_together_and_another_one_succeeds() {
        let steps = {
            let dir = data(&OLD);
            let plan = Replacement::plan(dir.path(), Timestamp::UNIX_EPOCH).unwrap();
            plan.steps().len()
        };
        assert_eq!(steps, 9);
        for taken in 0..=steps {
            let dir = data(&OLD);
            let dir = dir.path();
            let plan = Replacement::plan(dir, Timestamp::UNIX_EPOCH).unwrap();
            for step in plan.steps().iter().take(taken) {
                plan.take(step, dir).unwrap();
                // As if it had not been known whether that was done.
                if *step != Step::Conclude {
                    plan.take(step, dir).unwrap();
                }
            }
            if !is_unfinished(dir) {
                let whole = if taken == 0 {
                    says(dir, &OLD)
                } else {
                    says(dir, &NEW)
                };
                let expected = if taken == 0 { "old" } else { "new" };
                assert_eq!(whole.as_deref(), Some(expected), "{taken}");
            }
            let next = again(dir, "newer");
            assert!(!is_unfinished(dir), "{taken}");
            assert_eq!(says(dir, &NEW).as_deref(), Some("newer"), "{taken}");
            assert!(!dir.join(LOGS[0]).exists(), "{taken}: a log of another");
            let first = plan.aside(dir).unwrap();
            let whole = [Some(first), next.aside(dir)];
            let mut asides = whole.iter().flatten().filter(|aside| aside.exists());
            assert!(
                asides.any(|aside| says(aside, &OLD).as_deref() == Some("old")),
                "{taken}: what was there is in one place"
            );
        }
    }

    #[test]
    fn broken_off_twice_it_is_still_whole() {
        let count = 9;
        for (first, second) in (1..count).flat_map(|one| (1..count).map(move |two| (one, two))) {
            let dir = data(&OLD);
            let dir = dir.path();
            let plan = Replacement::plan(dir, Timestamp::UNIX_EPOCH).unwrap();
            for step in plan.steps().iter().take(first) {
                plan.take(step, dir).unwrap();
            }
            Replacement::unfinished(dir)
                .unwrap()
                .unwrap()
                .break_off(dir)
                .unwrap();
            make_ready(dir, "newer");
            let plan = Replacement::plan(dir, Timestamp::UNIX_EPOCH).unwrap();
            for step in plan.steps().iter().take(second) {
                plan.take(step, dir).unwrap();
            }
            again(dir, "newest");
            assert_eq!(says(dir, &NEW).as_deref(), Some("newest"));
            let asides = fs::read_dir(dir)
                .unwrap()
                .map(|entry| entry.unwrap().path());
            let old = asides.filter(|path| says(path, &OLD).as_deref() == Some("old"));
            assert_eq!(old.count(), 1, "{first} {second}");
        }
    }

    #[test]
    fn into_an_empty_directory_nothing_is_moved_aside() {
        for taken in 0..=4 {
            let dir = data(&[]);
            let dir = dir.path();
            fs::create_dir_all(dir.join("attachments/ab")).unwrap();
            let plan = Replacement::plan(dir, Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(plan.aside(dir), None);
            for step in plan.steps().iter().take(taken) {
                plan.take(step, dir).unwrap();
            }
            again(dir, "newer");
            assert_eq!(says(dir, &NEW).as_deref(), Some("newer"), "{taken}");
        }
    }
}
