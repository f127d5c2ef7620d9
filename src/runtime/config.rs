//! What operators decide about agents: the `[agents]` and `[runtime]` sections.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::dialect::{self, Framing, Protocol, TABLE};
use super::environment::is_secretive;

/// The agent that is there without being configured.
pub(super) const DEMO: &str = "demo";

/// Longer names are no names.
const MAX_NAME_BYTES: usize = 64;
/// Every session gets a directory of its own, below the data directory.
const WORKSPACE: &str = "workspaces/{user}/{session}";

/// The `[runtime]` section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// So many agents run at the same time.
    pub max_agents: NonZeroU32,
    /// So many of them for one user.
    pub max_agents_per_user: NonZeroU32,
}

/// The `[agents]` section: a table per agent, by name.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Config(BTreeMap<String, AgentConfig>);

/// One agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AgentConfig {
    /// Whether it can be started.
    pub(super) enabled: bool,
    /// What it speaks. Only the agent `demo` need not say.
    pub(super) protocol: Option<String>,
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    /// Where it is reached, or where it opens its socket when it was started.
    pub(super) socket: Option<String>,
    /// The gateway listens on `socket`, and the agent's program connects.
    pub(super) listen: bool,
    /// How its lines travel, if not as its protocol usually does.
    pub(super) transport: Option<TransportName>,
    /// What ends a line, if not what its protocol usually has.
    pub(super) framing: Option<FramingName>,
    /// Its working directory: relative to the data directory, with `{user}` and `{session}`.
    pub(super) workspace: String,
    /// Variables of its process.
    #[serde(serialize_with = "without_secrets")]
    pub(super) env: BTreeMap<String, String>,
    /// Variables whose values stand in files.
    pub(super) env_files: BTreeMap<String, PathBuf>,
    /// Variables that are handed on from the gateway's own environment.
    pub(super) pass_env: Vec<String>,
    /// As whom it runs; the gateway must be root for that.
    pub(super) user: Option<String>,
    /// Which permissions its files do not get, octal.
    pub(super) umask: Option<String>,
    /// What only its protocol knows.
    #[serde(serialize_with = "without_secrets")]
    pub(super) options: BTreeMap<String, Value>,
    /// A run may be silent for so long.
    pub(super) timeout_secs: NonZeroU32,
    /// A question that nobody has answered for so long is denied, if not earlier.
    pub(super) question_timeout_secs: Option<NonZeroU32>,
    /// It is put to rest after so long without a run, if it can go on later; 0 lets it run.
    pub(super) idle_secs: u32,
    /// It may crash so often in ten minutes in one session.
    pub(super) max_crashes: NonZeroU32,
    /// A longer line is dropped.
    pub(super) max_line_bytes: NonZeroU32,
    /// A run that says more is ended.
    pub(super) max_run_bytes: u64,
    /// May a session answer its harmless permissions by itself? The demo agent's, unless this says no;
    /// of others only if this says yes.
    pub(super) auto_approve: Option<bool>,
    /// The models that can be chosen; any if none is named.
    pub(super) models: Vec<String>,
    /// Its own modes that can be chosen.
    pub(super) modes: Vec<String>,
    /// The longest answer that can be asked for, in tokens.
    pub(super) max_tokens: Option<u32>,
    /// The highest temperature that can be asked for.
    pub(super) max_temperature: Option<f64>,
}

/// How lines travel, in the words of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TransportName {
    /// Standard input and output.
    Stdio,
    /// A Unix socket.
    Unix,
    /// Two of them.
    UnixPair,
}

/// What ends a line, in the words of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FramingName {
    /// A newline.
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
            workspace: WORKSPACE.into(),
            env: BTreeMap::new(),
            env_files: BTreeMap::new(),
            pass_env: Vec::new(),
            user: None,
            umask: None,
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
    /// The protocol that it speaks; none if that is the demo agent's, or unknown.
    pub(super) fn dialect(&self) -> Option<&'static Protocol> {
        let wanted = self.protocol.as_deref()?;
        TABLE.iter().copied().find(|known| known.name == wanted)
    }

    /// Is it the one that is built in?
    pub(super) fn is_demo(&self) -> bool {
        self.protocol
            .as_deref()
            .is_none_or(|protocol| protocol == DEMO)
    }

    /// How its lines travel.
    pub(super) fn transport(&self, protocol: &Protocol) -> dialect::Transport {
        match self.transport {
            None => protocol.transport,
            Some(TransportName::Stdio) => dialect::Transport::Stdio,
            Some(TransportName::Unix) => dialect::Transport::Unix,
            Some(TransportName::UnixPair) => dialect::Transport::UnixPair,
        }
    }

    /// What ends a line.
    pub(super) fn framing(&self, protocol: &Protocol) -> Framing {
        match self.framing {
            None => protocol.framing,
            Some(FramingName::Newline) => Framing::Newline,
            Some(FramingName::NodeIpc) => Framing::FormFeed,
        }
    }

    /// The permissions that its files do not get.
    pub(super) fn umask(&self) -> Option<u32> {
        u32::from_str_radix(self.umask.as_deref()?, 8).ok()
    }

    /// What is wrong with it, if anything.
    fn fault(&self, name: &str) -> Option<String> {
        let Some(protocol) = &self.protocol else {
            let missing = || format!("`agents.{name}` needs a `protocol`: {}", known());
            return (name != DEMO).then(missing);
        };
        if self.is_demo() {
            return None;
        }
        let Some(known_as) = self.dialect() else {
            return Some(format!(
                "`agents.{name}.protocol` is `{protocol}`, which is not one of: {}",
                known()
            ));
        };
        let over_pipes = self.transport(known_as) == dialect::Transport::Stdio;
        let strange = |option: &&String| {
            let mut options = known_as.options.iter().map(|(option, _)| *option);
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
            && (self.socket.is_none() || over_pipes || !(known_as.shares)(&self.options))
        {
            Some(format!(
                "`agents.{name}.listen` needs a `socket` and a protocol whose peers serve many sessions"
            ))
        } else if self.umask.is_some() && self.umask().is_none_or(|mask| mask > 0o777) {
            Some(format!(
                "`agents.{name}.umask` must be octal, such as \"077\""
            ))
        } else {
            let option = self.options.keys().find(strange)?;
            Some(format!(
                "`agents.{name}.options.{option}` is not an option of `{protocol}`"
            ))
        }
    }
}

/// Options that the link itself reads.
const COMMON_OPTIONS: [&str; 2] = ["token", "token_file"];

/// The protocols, as they are written in the configuration.
fn known() -> String {
    let names = TABLE.iter().map(|protocol| protocol.name);
    let names: Vec<&str> = std::iter::once(DEMO).chain(names).collect();
    names.join(", ")
}

impl Config {
    /// Complaints about values that cannot work, by key.
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

    /// Can an agent of this name be started?
    pub(crate) fn offers(&self, name: &str) -> bool {
        self.with_demo()
            .get(name)
            .is_some_and(|agent| agent.enabled)
    }

    /// All of them, and the demo agent, which is there without being configured.
    pub(super) fn with_demo(&self) -> BTreeMap<String, AgentConfig> {
        let mut agents = self.0.clone();
        agents.entry(DEMO.to_owned()).or_default();
        agents
    }
}

/// Names stand in addresses, environment variables and logs.
fn is_name(name: &str) -> bool {
    let is_fit = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_fit)
}

/// The values as they may be printed.
fn without_secrets<V: Serialize, S: Serializer>(
    values: &BTreeMap<String, V>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| {
        let shown = serde_json::to_value(value).unwrap_or_default();
        let hidden = || Value::String("***".into());
        (name, if is_secretive(name) { hidden() } else { shown })
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
    fn what_cannot_work_is_complained_about() {
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
