//! Process environment: the program, variables and system user of an agent's process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::AgentError;

/// Always passed on from the gateway's own environment.
const INHERITED: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
const SECRET_NAMES: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "AUTH"];
/// Redacting a shorter value would hide too much else.
const MIN_SECRET_BYTES: usize = 6;

#[derive(Debug)]
pub(super) struct Environment {
    pub(super) variables: BTreeMap<String, OsString>,
    /// Values to redact from the process's output.
    pub(super) secrets: Vec<String>,
}

impl Environment {
    /// Inherited variables, then `pass_env`, `env` and `env_files`; later ones win.
    pub(super) fn new(
        own: impl Fn(&str) -> Option<OsString>,
        passed: &[String],
        set: &BTreeMap<String, String>,
        files: &BTreeMap<String, PathBuf>,
    ) -> Result<Self, AgentError> {
        let (mut variables, mut secrets) = (BTreeMap::new(), Vec::new());
        let mut hide = |name: &str, value: &str, always: bool| {
            if (always || is_secret_name(name)) && value.len() >= MIN_SECRET_BYTES {
                secrets.push(value.to_owned());
            }
        };
        for name in INHERITED {
            variables.extend(own(name).map(|value| (name.to_owned(), value)));
        }
        for name in passed {
            if let Some(value) = own(name) {
                hide(name, &value.to_string_lossy(), false);
                variables.insert(name.clone(), value);
            }
        }
        for (name, value) in set {
            hide(name, value, false);
            variables.insert(name.clone(), value.into());
        }
        for (name, path) in files {
            let read = std::fs::read_to_string(path).map_err(|source| AgentError::EnvFile {
                variable: name.clone(),
                path: path.clone(),
                source,
            })?;
            let value = read.trim_end_matches(['\r', '\n']);
            hide(name, value, true);
            variables.insert(name.clone(), value.into());
        }
        Ok(Self { variables, secrets })
    }

    /// The program for the first word of `command`: a path, or a name that is looked up in `PATH`.
    pub(super) fn program(&self, word: &str) -> Result<PathBuf, AgentError> {
        let not_found = || AgentError::NotFound {
            program: word.to_owned(),
        };
        if word.contains('/') {
            let path = std::path::absolute(word).map_err(|_| not_found())?;
            return match executable(&path) {
                Some(true) => Ok(path),
                Some(false) => Err(AgentError::NotExecutable { path }),
                None => Err(not_found()),
            };
        }
        let directories = self.variables.get("PATH").cloned().unwrap_or_default();
        let mut not_executable = None;
        for path in std::env::split_paths(&directories).map(|dir| dir.join(word)) {
            match executable(&path) {
                Some(true) => return Ok(path),
                Some(false) => not_executable = not_executable.or(Some(path)),
                None => {}
            }
        }
        Err(not_executable.map_or_else(not_found, |path| AgentError::NotExecutable { path }))
    }
}

pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// Whether the file can be executed; none if there is no file.
fn executable(path: &Path) -> Option<bool> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// A system user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Account {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// The user of this name or id in the text of `/etc/passwd`, and their home.
pub(super) fn account(users: &str, name: &str) -> Option<(Account, PathBuf)> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (known, _, uid, gid) = (
            fields.next()?,
            fields.next()?,
            fields.next()?,
            fields.next()?,
        );
        let home = fields.nth(1)?;
        if known != name && uid != name {
            return None;
        }
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        Some((Account { uid, gid }, home.into()))
    })
}

/// The groups in the text of `/etc/group` that name a user of this account.
pub(super) fn supplementary_groups(users: &str, groups: &str, account: Account) -> Vec<u32> {
    let is_account = |line: &&str| {
        let uid = line.split(':').nth(2).and_then(|uid| uid.parse().ok());
        uid == Some(account.uid)
    };
    let named = users.lines().filter(is_account);
    let names: Vec<&str> = named.filter_map(|line| line.split(':').next()).collect();
    let gid = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let gid = fields.next()?.parse().ok()?;
        let mut members = fields.next()?.split(',');
        members.any(|member| names.contains(&member)).then_some(gid)
    };
    groups.lines().filter_map(gid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(name: &str) -> Option<OsString> {
        match name {
            "PATH" => Some("/nowhere:/bin:/usr/bin".into()),
            "HOME" => Some("/home/gateway".into()),
            "SWITCHBOARD__AUTH__SIGNING_KEY" | "DATABASE_URL" | "API_KEY" => {
                Some("our-own-secret".into())
            }
            _ => None,
        }
    }

    #[test]
    fn only_allowed_variables_are_passed_on() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "from-a-file\n").unwrap();
        let set = [("MODE", "fast"), ("MY_TOKEN", "set-secret")];
        let set = set
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let files = [("PASS".to_owned(), file.path().to_owned())].into();
        let passed = ["API_KEY".to_owned(), "ABSENT".to_owned()];
        let environment = Environment::new(own, &passed, &set, &files).unwrap();
        let names: Vec<_> = environment.variables.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["API_KEY", "HOME", "MODE", "MY_TOKEN", "PASS", "PATH"]
        );
        assert_eq!(environment.variables["PASS"], "from-a-file");
        assert_eq!(
            environment.secrets,
            ["our-own-secret", "set-secret", "from-a-file"]
        );
    }

    #[test]
    fn a_program_is_found_or_the_error_says_why_not() {
        let none = BTreeMap::new();
        let environment = Environment::new(own, &[], &none, &BTreeMap::new()).unwrap();
        assert!(environment.program("sh").is_ok());
        assert!(matches!(
            environment.program("no-such-program"),
            Err(AgentError::NotFound { .. })
        ));
        assert!(matches!(
            environment.program("/etc/passwd"),
            Err(AgentError::NotExecutable { .. })
        ));
        assert!(matches!(
            environment.program("/no/such"),
            Err(AgentError::NotFound { .. })
        ));
    }

    #[test]
    fn users_are_found_by_name_and_id() {
        let users = "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1001:Ada:/home/ada:/bin/sh\nbad\n";
        let ada = Some((
            Account {
                uid: 1000,
                gid: 1001,
            },
            "/home/ada".into(),
        ));
        assert_eq!(account(users, "ada"), ada);
        assert_eq!(account(users, "1000"), ada);
        assert_eq!(account(users, "bob"), None);
    }

    #[test]
    fn the_groups_of_an_account_are_those_that_name_it() {
        let users = "root:x:0:0::/root:/bin/sh\nagent:x:900:900::/srv:/bin/sh\n";
        let groups = "root:x:0:\nstaff:x:50:ada,agent\nagents:x:51:agents\ndocker:x:52:agent\n";
        let (uid, gid) = (900, 900);
        let found = supplementary_groups(users, groups, Account { uid, gid });
        assert_eq!(found, [50, 52]);
        let (uid, gid) = (7, 7);
        assert!(supplementary_groups(users, groups, Account { uid, gid }).is_empty());
    }
}
