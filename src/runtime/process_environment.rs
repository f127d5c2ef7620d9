//! What an agent's process is given: a program that was looked up, variables by an allow-list, a user.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::trouble::Trouble;

/// Handed on from the gateway's own environment: where things are, and in which language.
const HANDED_ON: [&str; 14] = [
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
/// Names that say that the value is nobody's business.
const SECRETIVE: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "AUTH"];
/// A shorter value is not worth hiding, and would hide too much else.
const SECRET_BYTES: usize = 6;

/// The variables of one process.
#[derive(Debug)]
pub(super) struct Environment {
    /// Names and values.
    pub(super) variables: BTreeMap<String, OsString>,
    /// Values that must not be seen in what the process writes.
    pub(super) secrets: Vec<String>,
}

impl Environment {
    /// Put together from what is handed on, `pass_env`, `env` and `env_files`, each above the ones
    /// before.
    pub(super) fn new(
        own: impl Fn(&str) -> Option<OsString>,
        passed: &[String],
        set: &BTreeMap<String, String>,
        files: &BTreeMap<String, PathBuf>,
    ) -> Result<Self, Trouble> {
        let (mut variables, mut secrets) = (BTreeMap::new(), Vec::new());
        let mut hide = |name: &str, value: &str, always: bool| {
            if (always || is_secretive(name)) && value.len() >= SECRET_BYTES {
                secrets.push(value.to_owned());
            }
        };
        for name in HANDED_ON {
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
            let read = std::fs::read_to_string(path).map_err(|source| Trouble::EnvFile {
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

    /// The program that a word of `command` means: a path, or a name that is looked up in `PATH`.
    pub(super) fn program(&self, word: &str) -> Result<PathBuf, Trouble> {
        let not_found = || Trouble::NotFound {
            program: word.to_owned(),
        };
        if word.contains('/') {
            let path = std::path::absolute(word).map_err(|_| not_found())?;
            return match executable(&path) {
                Some(true) => Ok(path),
                Some(false) => Err(Trouble::NotExecutable { path }),
                None => Err(not_found()),
            };
        }
        let places = self.variables.get("PATH").cloned().unwrap_or_default();
        let mut barred = None;
        for path in std::env::split_paths(&places).map(|dir| dir.join(word)) {
            match executable(&path) {
                Some(true) => return Ok(path),
                Some(false) => barred = barred.or(Some(path)),
                None => {}
            }
        }
        Err(barred.map_or_else(not_found, |path| Trouble::NotExecutable { path }))
    }
}

/// Does a name say that its value is nobody's business?
pub(super) fn is_secretive(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRETIVE.iter().any(|part| name.contains(part))
}

/// May the file be executed, if it is there?
fn executable(path: &Path) -> Option<bool> {
    let about = std::fs::metadata(path).ok()?;
    Some(about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// A user of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account {
    /// Their number.
    pub(super) uid: u32,
    /// The number of their group.
    pub(super) gid: u32,
}

/// The user of that name (or number) in the list of users, and their home.
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
    fn only_what_is_allowed_is_handed_on() {
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
    fn a_program_is_found_or_it_is_said_why_not() {
        let none = BTreeMap::new();
        let environment = Environment::new(own, &[], &none, &BTreeMap::new()).unwrap();
        assert!(environment.program("sh").is_ok());
        assert!(matches!(
            environment.program("no-such-program"),
            Err(Trouble::NotFound { .. })
        ));
        assert!(matches!(
            environment.program("/etc/passwd"),
            Err(Trouble::NotExecutable { .. })
        ));
        assert!(matches!(
            environment.program("/no/such"),
            Err(Trouble::NotFound { .. })
        ));
    }

    #[test]
    fn users_are_found_by_name_and_number() {
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
}
