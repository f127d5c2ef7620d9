//! Preflight: what keeps the configured agents from working on this machine, found without starting one.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::agent_logins::{self, AgentLogin};
use super::config::{AgentConfig, Config};
use super::dialect::Transport;
use super::error::AgentError;
use super::process_environment::{self, Environment};

const PLACEHOLDERS: [&str; 4] = ["user", "session", "workspace", "socket"];
/// A known program that does not tell its version within this is not asked any longer.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);
const VERSION_BYTES: usize = 4096;

/// What was found out about one agent.
#[derive(Debug)]
pub(crate) struct AgentFinding {
    pub(crate) agent: String,
    pub(crate) verdict: Preflight,
}

/// A fix completes the sentence that what was found begins: "found: fix".
#[derive(Debug)]
pub(crate) enum Preflight {
    /// Nothing is wrong with it; what it is.
    Ready(String),
    /// It may not work.
    Doubt { found: String, fix: String },
    /// It cannot work.
    Problem { found: String, fix: String },
}

/// Looks at every enabled agent.
pub(crate) fn preflight(config: &Config, data: &Path) -> Vec<AgentFinding> {
    let agents = config.with_demo().into_iter();
    let enabled = agents.filter(|(_, agent)| agent.enabled && !agent.is_demo());
    enabled
        .flat_map(|(name, agent)| {
            let verdicts = examine(&name, &agent, data);
            verdicts.into_iter().map(move |verdict| AgentFinding {
                agent: name.clone(),
                verdict,
            })
        })
        .collect()
}

/// What keeps one agent from working; at least one verdict. Blocks: it may ask a program for its version.
pub(super) fn examine(name: &str, agent: &AgentConfig, data: &Path) -> Vec<Preflight> {
    let mut found = literal_placeholders(name, agent);
    found.extend(missing_files(agent));
    if let Some(user) = agent.user.as_ref().filter(|user| !user.contains('{')) {
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        if process_environment::account(&users, user).is_none() {
            let user = user.clone();
            found.push(problem(&AgentError::NoUser { user }));
        }
    }
    found.extend(missing_socket(agent, data));
    let has_problem = !found.is_empty();
    match program(agent) {
        Some(Err(error)) => found.push(problem(&error)),
        Some(Ok((path, environment))) if !has_problem => {
            found.push(login(agent, &path, &environment));
        }
        _ if !has_problem => found.push(Preflight::Ready("configured".into())),
        _ => {}
    }
    found
}

fn problem(error: &AgentError) -> Preflight {
    let text = error.to_string();
    // The errors name what to do after a colon.
    let (found, fix) = text.rsplit_once(": ").unwrap_or((&text, "correct it"));
    Preflight::Problem {
        found: found.to_owned(),
        fix: fix.to_owned(),
    }
}

/// Texts with a placeholder that stays as it is.
fn literal_placeholders(name: &str, agent: &AgentConfig) -> Vec<Preflight> {
    let filled = |key: &str, text: &str, known: &[&str]| {
        placeholders(text)
            .filter(|placeholder| !known.contains(placeholder))
            .map(|placeholder| literal(name, key, placeholder, known))
            .collect::<Vec<_>>()
    };
    let mut found = Vec::new();
    for word in &agent.command {
        found.extend(filled("command", word, &PLACEHOLDERS));
    }
    for (variable, value) in &agent.env {
        found.extend(filled(&format!("env.{variable}"), value, &PLACEHOLDERS));
    }
    let names = &PLACEHOLDERS[..2];
    let single = [
        ("workspace", Some(&agent.workspace)),
        ("socket", agent.socket.as_ref()),
        ("user", agent.user.as_ref()),
    ];
    for (key, text) in single {
        found.extend(text.into_iter().flat_map(|text| filled(key, text, names)));
    }
    for (variable, path) in &agent.env_files {
        let key = format!("env_files.{variable}");
        found.extend(filled(&key, &path.to_string_lossy(), &[]));
    }
    for (option, value) in &agent.options {
        let text = value.as_str().unwrap_or_default();
        found.extend(filled(&format!("options.{option}"), text, &[]));
    }
    found
}

fn literal(name: &str, key: &str, placeholder: &str, known: &[&str]) -> Preflight {
    let fix = if known.is_empty() {
        "nothing is filled in there, write the value itself".to_owned()
    } else {
        let known: Vec<String> = known.iter().map(|known| format!("`{{{known}}}`")).collect();
        format!("only these are filled in there, {}", known.join(" and "))
    };
    Preflight::Problem {
        found: format!("`agents.{name}.{key}` has `{{{placeholder}}}`, which stays as it is"),
        fix,
    }
}

/// The words in `{…}` that look like placeholders: lower-case letters, and not a shell's `${…}`.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices('{').map(|(start, _)| start);
    starts.filter_map(move |start| {
        let word = text[start + 1..].split('}').next()?;
        let is_closed = text[start + 1 + word.len()..].starts_with('}');
        let is_word = !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        (is_closed && is_word && !text[..start].ends_with('$')).then_some(word)
    })
}

/// Files of the configuration that cannot be read.
fn missing_files(agent: &AgentConfig) -> Vec<Preflight> {
    let token = agent.options.get("token_file").and_then(Value::as_str);
    let token = token.map(|path| ("options.token_file".to_owned(), PathBuf::from(path)));
    let files = agent.env_files.iter();
    let files = files.map(|(variable, path)| (format!("env_files.{variable}"), path.clone()));
    let unread = |(key, path): (String, PathBuf)| {
        let error = std::fs::File::open(&path).err()?;
        // A path with a placeholder has its finding already.
        let is_literal = placeholders(&path.to_string_lossy()).next().is_some();
        (!is_literal).then(|| Preflight::Problem {
            found: format!("the file {} cannot be read ({error})", path.display()),
            fix: format!("create it, or correct `{key}`"),
        })
    };
    files.chain(token).filter_map(unread).collect()
}

/// A socket that a program of the operator's should have opened.
fn missing_socket(agent: &AgentConfig, data: &Path) -> Option<Preflight> {
    let socket = agent
        .socket
        .as_ref()
        .filter(|socket| !socket.contains('{'))?;
    let is_expected = agent.command.is_empty()
        && !agent.listen
        && agent
            .dialect()
            .is_some_and(|dialect| agent.transport(dialect) != Transport::Stdio);
    let path = data.join(socket);
    (is_expected && !path.exists()).then(|| Preflight::Problem {
        found: format!("its socket {} does not exist", path.display()),
        fix: "start the program that opens it, or correct `socket`".into(),
    })
}

/// The program that would be started, with its environment; none if the gateway starts nothing.
fn program(agent: &AgentConfig) -> Option<Result<(PathBuf, Environment), AgentError>> {
    let word = agent.command.first()?;
    // A program below a workspace or a socket is made later.
    if word.contains('{') {
        return None;
    }
    let own = |name: &str| std::env::var_os(name);
    // The files are looked at on their own.
    let environment = Environment::new(own, &agent.pass_env, &agent.env, &BTreeMap::new());
    Some(environment.and_then(|environment| {
        let path = environment.program(word)?;
        Ok((path, environment))
    }))
}

fn login(agent: &AgentConfig, path: &Path, environment: &Environment) -> Preflight {
    let shown = path.display().to_string();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(known) = agent_logins::find(&name) else {
        return Preflight::Ready(shown);
    };
    // As another system user it is not started from here.
    let version = match agent.user {
        Some(_) => None,
        None => version(path, environment),
    };
    let shown = match version {
        Some(version) => format!("{shown}, version {version}"),
        None => shown,
    };
    if is_logged_in(known, agent, environment) {
        return Preflight::Ready(shown);
    }
    Preflight::Doubt {
        found: format!("{shown}, is perhaps not logged in"),
        fix: format!(
            "run `{}` once, as the user that it runs as and with its HOME",
            known.login
        ),
    }
}

fn is_logged_in(known: &AgentLogin, agent: &AgentConfig, environment: &Environment) -> bool {
    let is_set = |name: &&str| {
        environment.variables.contains_key(*name) || agent.env_files.contains_key(*name)
    };
    if known.variables.iter().any(is_set)
        && (!known.needs_auth_method || agent.options.contains_key("auth_method"))
    {
        return true;
    }
    let variable = |name: &str| environment.variables.get(name).map(PathBuf::from);
    let home = variable("HOME").unwrap_or_default();
    known.files.iter().any(|(replaced_by, folder, file)| {
        let folder = variable(replaced_by).unwrap_or_else(|| home.join(folder));
        let path = folder.join(file);
        // A home per user: each of them logs in, which cannot be seen here.
        path.to_string_lossy().contains('{') || path.exists()
    })
}

/// What a known program prints for `--version`, on one line.
fn version(path: &Path, environment: &Environment) -> Option<String> {
    let mut child = Command::new(path)
        .arg("--version")
        .env_clear()
        .envs(&environment.variables)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let until = Instant::now() + VERSION_TIMEOUT;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > until {
            child.kill().ok();
            child.wait().ok();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut stdout = child.stdout.take()?;
    // What it left running may still hold the pipe open: only what is there now is read.
    rustix::fs::fcntl_setfl(&stdout, rustix::fs::OFlags::NONBLOCK).ok()?;
    let mut printed = vec![0; VERSION_BYTES];
    let length = io::Read::read(&mut stdout, &mut printed).ok()?;
    let printed = String::from_utf8_lossy(&printed[..length]);
    let line = printed.lines().next()?.trim();
    let line: String = line.chars().take(80).collect();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_in_braces_are_placeholders() {
        let found = |text| placeholders(text).collect::<Vec<_>>();
        assert_eq!(found("/srv/{user}/{x_y}"), ["user", "x_y"]);
        for text in [
            "{}",
            "{User}",
            "${user}",
            "{\"a\": 1}",
            "{user",
            "user}",
            "{a b}",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
