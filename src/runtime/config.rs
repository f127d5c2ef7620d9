//! Agent configuration: the `[agents]` and `[runtime]` sections.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::agent_home;
use super::dialect::{self, Framing, Protocol, TABLE};
use super::process_environment::is_secret_name;
use super::sandbox::Network;

/// The agent that needs no configuration.
pub(super) const DEMO: &str = "demo";

const MAX_NAME_BYTES: usize = 64;
/// Every session gets a directory of its own, below the data directory.
const DEFAULT_WORKSPACE: &str = "workspaces/{user}/{session}";

/// The `[runtime]` section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// So many agents run at the same time.
    pub max_agents: NonZeroU32,
    /// So many of them for one user.
    pub max_agents_per_user: NonZeroU32,
    /// The sandbox of agents that do not choose another.
    pub sandbox: SandboxMode,
}

/// Whether agents run in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// With everything that the kernel offers.
    Auto,
    /// Not started unless the kernel protects files.
    Required,
    /// Without one.
    Off,
}

/// The `[agents]` section: a table per agent, by name.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Config(BTreeMap<String, AgentConfig>);

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AgentConfig {
    pub(super) enabled: bool,
    /// Its protocol; optional only for the agent `demo`.
    pub(super) protocol: Option<String>,
    pub(super) command: Vec<String>,
    /// The socket to connect to, or the one that the started program opens.
    pub(super) socket: Option<String>,
    /// The gateway listens on `socket`, and the agent's program connects.
    pub(super) listen: bool,
    pub(super) transport: Option<TransportName>,
    pub(super) framing: Option<FramingName>,
    /// Its working directory: relative to the data directory, with `{user}` and `{session}`.
    pub(super) workspace: String,
    #[serde(serialize_with = "without_secrets")]
    pub(super) env: BTreeMap<String, String>,
    pub(super) env_files: BTreeMap<String, PathBuf>,
    /// Variables passed on from the gateway's own environment.
    pub(super) pass_env: Vec<String>,
    /// The system user it runs as; the gateway must be root for that.
    pub(super) user: Option<String>,
    /// Its umask, octal.
    pub(super) umask: Option<String>,
    /// Whether it runs in a sandbox; default: as `[runtime]` says.
    pub(super) sandbox: Option<SandboxMode>,
    /// Further paths that it may read, absolute.
    pub(super) read: Vec<String>,
    /// Further paths that it may read and change, absolute.
    pub(super) write: Vec<String>,
    /// The TCP ports that it may connect to.
    pub(super) network: Network,
    /// Its home: `user`, `shared` or a path; see `agent_home`.
    pub(super) home: Option<String>,
    #[serde(serialize_with = "without_secrets")]
    pub(super) options: BTreeMap<String, Value>,
    /// How long a run may wait without a byte from the agent.
    pub(super) timeout_secs: NonZeroU32,
    /// How long its questions may stay open, if not shorter.
    pub(super) question_timeout_secs: Option<NonZeroU32>,
    /// It is stopped after this long without a run, if it can continue later; 0 keeps it running.
    pub(super) idle_secs: u32,
    /// Crashes allowed in ten minutes in one session.
    pub(super) max_crashes: NonZeroU32,
    /// Longer lines are dropped.
    pub(super) max_line_bytes: NonZeroU32,
    /// A run with more output is ended.
    pub(super) max_run_bytes: u64,
    /// Whether a session may approve its harmless permissions by itself. Default: only the demo agent's.
    pub(super) auto_approve: Option<bool>,
    /// The models that can be chosen; empty allows any.
    pub(super) models: Vec<String>,
    /// Its own modes that can be chosen.
    pub(super) modes: Vec<String>,
    /// The longest answer that can be asked for, in tokens.
    pub(super) max_tokens: Option<u32>,
    /// The highest temperature that can be asked for.
    pub(super) max_temperature: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TransportName {
    Stdio,
    Unix,
    UnixPair,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FramingName {
    Newline,
    /// A form feed.
    NodeIpc,
}

const fn number(value: u32) -> NonZeroU32 {
    match NonZeroU32::new(value) {
        Some(number) => number,
        None => NonZeroU32::MIN,
    }
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            protocol: None,
            command: Vec::new(),
            socket: None,
            listen: false,
            transport: None,
            framing: None,
            workspace: DEFAULT_WORKSPACE.into(),
            env: BTreeMap::new(),
            env_files: BTreeMap::new(),
            pass_env: Vec::new(),
            user: None,
            umask: None,
            sandbox: None,
            read: Vec::new(),
            write: Vec::new(),
            network: Network::Open,
            home: None,
            options: BTreeMap::new(),
            timeout_secs: number(600),
            question_timeout_secs: None,
            idle_secs: 1_800,
            max_crashes: number(50),
            max_line_bytes: number(16 * 1024 * 1024),
            max_run_bytes: 256 * 1024 * 1024,
            auto_approve: None,
            models: Vec::new(),
            modes: Vec::new(),
            max_tokens: None,
            max_temperature: None,
        }
    }
}

impl AgentConfig {
    /// Its protocol; none if it is the demo agent's, or unknown.
    pub(super) fn dialect(&self) -> Option<&'static Protocol> {
        let wanted = self.protocol.as_deref()?;
        TABLE.iter().copied().find(|known| known.name == wanted)
    }

    pub(super) fn is_demo(&self) -> bool {
        self.protocol
            .as_deref()
            .is_none_or(|protocol| protocol == DEMO)
    }

    pub(super) fn transport(&self, protocol: &Protocol) -> dialect::Transport {
        match self.transport {
            None => protocol.transport,
            Some(TransportName::Stdio) => dialect::Transport::Stdio,
            Some(TransportName::Unix) => dialect::Transport::Unix,
            Some(TransportName::UnixPair) => dialect::Transport::UnixPair,
        }
    }

    pub(super) fn framing(&self, protocol: &Protocol) -> Framing {
        match self.framing {
            None => protocol.framing,
            Some(FramingName::Newline) => Framing::Newline,
            Some(FramingName::NodeIpc) => Framing::FormFeed,
        }
    }

    pub(super) fn umask(&self) -> Option<u32> {
        u32::from_str_radix(self.umask.as_deref()?, 8).ok()
    }

    /// The paths that it is granted by hand.
    fn paths(&self) -> impl Iterator<Item = &String> {
        self.read.iter().chain(&self.write)
    }

    /// The first mistake in it, for the operator.
    fn fault(&self, name: &str) -> Option<String> {
        let Some(protocol) = &self.protocol else {
            let missing = || format!("`agents.{name}` needs a `protocol`: {}", protocol_names());
            return (name != DEMO).then(missing);
        };
        if self.is_demo() {
            return None;
        }
        let Some(dialect) = self.dialect() else {
            return Some(format!(
                "`agents.{name}.protocol` is `{protocol}`, which is not one of: {}",
                protocol_names()
            ));
        };
        let over_pipes = self.transport(dialect) == dialect::Transport::Stdio;
        let is_unknown = |option: &&String| {
            let mut options = dialect.options.iter().map(|(option, _)| *option);
            options.all(|known| known != option.as_str())
                && !COMMON_OPTIONS.contains(&option.as_str())
        };
        if over_pipes && self.command.is_empty() {
            Some(format!(
                "`agents.{name}` needs a `command`: the program and its arguments"
            ))
        } else if !over_pipes && self.command.is_empty() && self.socket.is_none() {
            Some(format!(
                "`agents.{name}` needs a `socket`, or a `command` that opens one"
            ))
        } else if !self.command.is_empty()
            && self
                .socket
                .as_ref()
                .is_some_and(|socket| !socket.contains("{session}"))
        {
            Some(format!(
                "`agents.{name}.socket` must contain `{{session}}` beside a `command`: every session \
                 starts a process of its own, and must reach that one"
            ))
        } else if self.listen && self.options.keys().all(|name| !name.starts_with("token")) {
            Some(format!(
                "`agents.{name}.listen` needs `options.token_file`: what peers have to show"
            ))
        } else if self.listen
            && (self.socket.is_none() || over_pipes || !(dialect.shares)(&self.options))
        {
            Some(format!(
                "`agents.{name}.listen` needs a `socket` and a protocol whose peers serve many sessions"
            ))
        } else if self.umask.is_some() && self.umask().is_none_or(|mask| mask > 0o777) {
            Some(format!(
                "`agents.{name}.umask` must be octal, such as \"077\""
            ))
        } else if self.home.is_some() && agent_home::is_set(self) {
            Some(format!(
                "`agents.{name}` has both `home` and the variable `HOME`: keep one of the two"
            ))
        } else if let Some(path) = self.paths().find(|path| !path.starts_with('/')) {
            Some(format!(
                "`agents.{name}` grants `{path}`: `read` and `write` take absolute paths"
            ))
        } else {
            let option = self.options.keys().find(is_unknown)?;
            Some(format!(
                "`agents.{name}.options.{option}` is not an option of `{protocol}`"
            ))
        }
    }
}

/// Options that the link itself reads.
const COMMON_OPTIONS: [&str; 2] = ["token", "token_file"];

fn protocol_names() -> String {
    let names = TABLE.iter().map(|protocol| protocol.name);
    let names: Vec<&str> = std::iter::once(DEMO).chain(names).collect();
    names.join(", ")
}

impl Config {
    /// Mistakes in the values, by key.
    pub fn complaints(&self) -> Vec<(&'static str, String)> {
        let mut complaints = Vec::new();
        for (name, agent) in &self.0 {
            if !is_name(name) {
                let wanted = "up to 64 lower-case letters, digits, `-` and `_`";
                complaints.push(("agents", format!("the name `{name}` must be {wanted}")));
            } else if let Some(fault) = agent.fault(name) {
                complaints.push(("agents", fault));
            }
        }
        complaints
    }

    pub(crate) fn offers(&self, name: &str) -> bool {
        self.with_demo()
            .get(name)
            .is_some_and(|agent| agent.enabled)
    }

    pub(super) fn with_demo(&self) -> BTreeMap<String, AgentConfig> {
        let mut agents = self.0.clone();
        agents.entry(DEMO.to_owned()).or_default();
        agents
    }
}

/// Names appear in URLs, environment variables and logs.
fn is_name(name: &str) -> bool {
    let is_fit = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_fit)
}

fn without_secrets<V: Serialize, S: Serializer>(
    values: &BTreeMap<String, V>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| {
        let shown = serde_json::to_value(value).unwrap_or_default();
        let hidden = || Value::String("***".into());
        (
            name,
            if is_secret_name(name) {
                hidden()
            } else {
                shown
            },
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> Config {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let json = r#"{"mine": {"protocol": "demo", "comand": []}}"#;
        assert!(serde_json::from_str::<Config>(json).is_err());
    }

    #[test]
    fn every_mistake_is_reported() {
        assert!(
            config(r#"{"demo": {"enabled": false}}"#)
                .complaints()
                .is_empty()
        );
        for (json, part) in [
            (r#"{"mine": {}}"#, "`agents.mine` needs a `protocol`"),
            (r#"{"my agent": {"protocol": "demo"}}"#, "`my agent`"),
            (r#"{"mine": {"protocol": "telepathy"}}"#, "not one of: demo"),
            (r#"{"mine": {"protocol": "acp"}}"#, "needs a `command`"),
            (r#"{"mine": {"protocol": "nous"}}"#, "needs a `socket`"),
            (
                r#"{"mine": {"protocol": "nous", "command": ["x"], "socket": "/run/x"}}"#,
                "must contain `{session}`",
            ),
            (
                r#"{"mine": {"protocol": "remoteui", "socket": "/run/x", "listen": true}}"#,
                "needs `options.token_file`",
            ),
            (
                r#"{"mine": {"protocol": "nous", "socket": "x", "listen": true, "options": {"token": "x"}}}"#,
                "whose peers serve many sessions",
            ),
            (
                r#"{"mine": {"protocol": "acp", "command": ["x"], "umask": "rwx"}}"#,
                "must be octal",
            ),
            (
                r#"{"mine": {"protocol": "acp", "command": ["x"], "write": ["~/x"]}}"#,
                "take absolute paths",
            ),
            (
                r#"{"mine": {"protocol": "acp", "command": ["x"], "home": "user", "env": {"HOME": "/x"}}}"#,
                "both `home` and the variable `HOME`",
            ),
            (
                r#"{"mine": {"protocol": "acp", "command": ["x"], "options": {"speed": 1}}}"#,
                "is not an option of `acp`",
            ),
        ] {
            let complaints = config(json).complaints();
            assert_eq!(complaints.len(), 1);
            assert_eq!(complaints[0].0, "agents");
            assert!(complaints[0].1.contains(part), "{}", complaints[0].1);
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let json = r#"{"mine": {"protocol": "demo", "env": {"API_KEY": "abc", "MODE": "fast"},
            "options": {"token": "def"}}}"#;
        let printed = serde_json::to_value(config(json)).unwrap();
        assert_eq!(printed["mine"]["env"]["API_KEY"], "***");
        assert_eq!(printed["mine"]["env"]["MODE"], "fast");
        assert_eq!(printed["mine"]["options"]["token"], "***");
    }
}
