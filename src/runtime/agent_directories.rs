//! Agent directories: the home, the temporary directory and others that are made for an agent.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use super::agent_home::{self, Home};
use super::config::AgentConfig;
use super::error::AgentError;
use super::process_environment::{Account, Environment};
use super::workspace::{self, Workspace};

/// Below the data directory.
pub(super) const TEMPORARY_DIR: &str = "tmp";
const TEMPORARY_VARIABLES: [&str; 3] = ["TMPDIR", "TEMP", "TMP"];
/// A home has few levels of settings.
const MAX_TEMPLATE_DEPTH: usize = 16;

/// Makes directories for one agent.
pub(super) struct DirectoryMaker<'a> {
    pub(super) data: &'a Path,
    pub(super) config: &'a AgentConfig,
    /// Fills in the names of user and session.
    pub(super) fill: &'a dyn Fn(&str) -> String,
    pub(super) account: Option<Account>,
}

impl DirectoryMaker<'_> {
    fn make(&self, pattern: &str) -> Result<Workspace, AgentError> {
        Ok(workspace::make(
            self.data,
            pattern,
            self.fill,
            self.account,
        )?)
    }

    /// Makes the agent's home, if it is not to use another one, and tells it where.
    pub(super) fn home(
        &self,
        has_user_homes: bool,
        environment: &mut Environment,
    ) -> Result<Option<Workspace>, AgentError> {
        let Home::Directory(pattern) = agent_home::of(self.config, has_user_homes) else {
            return Ok(None);
        };
        let home = self.make(pattern)?;
        let is_new =
            std::fs::read_dir(&home.path).is_ok_and(|mut entries| entries.next().is_none());
        if is_new {
            let template = self.data.join(agent_home::TEMPLATE);
            let copied = copy(&template, &home.path, self.account, MAX_TEMPLATE_DEPTH);
            copied.map_err(AgentError::Spawn)?;
        }
        let variables = &mut environment.variables;
        variables.insert("HOME".into(), home.path.clone().into_os_string());
        Ok(Some(home))
    }

    /// Makes the directories that the environment names for each user, such as
    /// `CODEX_HOME = "/srv/codex/{user}"`.
    pub(super) fn named_in_environment(
        &self,
        environment: &mut Environment,
    ) -> Result<Vec<Workspace>, AgentError> {
        let mut made = Vec::new();
        for (name, pattern) in &self.config.env {
            let is_directory = name.ends_with("HOME") || name.ends_with("DIR");
            let is_per_user = pattern.contains("{user}") || pattern.contains("{session}");
            // The content of a file would win.
            let is_replaced = self.config.env_files.contains_key(name);
            if is_directory && is_per_user && pattern.starts_with('/') && !is_replaced {
                let directory = self.make(pattern)?;
                let path = directory.path.clone().into_os_string();
                environment.variables.insert(name.clone(), path);
                made.push(directory);
            }
        }
        Ok(made)
    }

    /// Makes a temporary directory for the session, unless the configuration names one.
    pub(super) fn temporary(
        &self,
        environment: &mut Environment,
    ) -> Result<Option<Workspace>, AgentError> {
        let is_set = |name: &&str| self.config.env.contains_key(*name);
        if TEMPORARY_VARIABLES.iter().any(is_set) {
            return Ok(None);
        }
        let made = self.make(&format!("{TEMPORARY_DIR}/{{session}}"))?;
        for name in TEMPORARY_VARIABLES {
            let path = made.path.clone().into_os_string();
            environment.variables.insert(name.into(), path);
        }
        Ok(Some(made))
    }
}

/// Copies what is in a directory into an empty one; nothing if there is no such directory.
fn copy(from: &Path, to: &Path, account: Option<Account>, depth: usize) -> io::Result<()> {
    let entries = match std::fs::read_dir(from) {
        Ok(entries) if depth > 0 => entries,
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let (source, target): (PathBuf, PathBuf) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            std::fs::DirBuilder::new().mode(0o700).create(&target)?;
            copy(&source, &target, account, depth - 1)?;
        } else if kind.is_symlink() {
            symlink(std::fs::read_link(&source)?, &target)?;
        } else if kind.is_file() {
            std::fs::copy(&source, &target)?;
        }
        if let Some(account) = account {
            std::os::unix::fs::lchown(&target, Some(account.uid), Some(account.gid))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn environment() -> Environment {
        Environment {
            variables: BTreeMap::new(),
            secrets: Vec::new(),
        }
    }

    #[test]
    fn a_new_home_begins_with_the_template_and_is_never_reset() {
        let data = tempfile::tempdir().unwrap();
        let template = data.path().join("homes/template/.config/x");
        std::fs::create_dir_all(&template).unwrap();
        std::fs::write(template.join("settings"), "first").unwrap();
        let config = AgentConfig::default();
        let maker = DirectoryMaker {
            data: data.path(),
            config: &config,
            fill: &|text| text.replace("{user}", "mia"),
            account: None,
        };
        let mut variables = environment();
        let home = maker.home(true, &mut variables).unwrap().unwrap();
        assert_eq!(variables.variables["HOME"], home.path.as_os_str());
        let settings = home.path.join(".config/x/settings");
        assert_eq!(std::fs::read_to_string(&settings).unwrap(), "first");
        std::fs::write(&settings, "changed").unwrap();
        std::fs::write(template.join("settings"), "second").unwrap();
        maker.home(true, &mut variables).unwrap();
        assert_eq!(std::fs::read_to_string(&settings).unwrap(), "changed");
        assert!(maker.home(false, &mut variables).unwrap().is_none());
    }

    #[test]
    fn directories_that_the_environment_names_per_user_are_made() {
        let data = tempfile::tempdir().unwrap();
        let pattern = format!("{}/codex/{{user}}", data.path().display());
        let mut config = AgentConfig::default();
        config.env.insert("CODEX_HOME".into(), pattern.clone());
        config.env.insert("GREETING".into(), "/hello/{user}".into());
        let maker = DirectoryMaker {
            data: data.path(),
            config: &config,
            fill: &|text| text.replace("{user}", "mia"),
            account: None,
        };
        let made = maker.named_in_environment(&mut environment()).unwrap();
        assert_eq!(made.len(), 1);
        assert!(data.path().join("codex/mia").is_dir());
    }
}
