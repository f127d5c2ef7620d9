//! The agents that can be started, as configured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{FromAgent, Link, demo};
use crate::domain::command::SettingsChange;

/// The agent that is there without being configured.
const DEMO: &str = "demo";

/// Longer names are no names.
const MAX_NAME_BYTES: usize = 64;

/// The `[agents]` section: a table per agent, by name.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Config(BTreeMap<String, AgentConfig>);

/// One agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct AgentConfig {
    /// Whether it can be started.
    #[serde(default = "enabled")]
    enabled: bool,
    /// What it speaks. Only the agent `demo` need not say.
    protocol: Option<Protocol>,
    /// May a session answer its harmless permissions by itself? The demo agent's, unless this says no;
    /// of others only if this says yes.
    auto_approve: Option<bool>,
    /// The models that can be chosen; any if none is named.
    #[serde(default)]
    models: Vec<String>,
    /// Its own modes that can be chosen.
    #[serde(default)]
    modes: Vec<String>,
    /// The longest answer that can be asked for, in tokens.
    max_tokens: Option<u32>,
    /// The highest temperature that can be asked for.
    max_temperature: Option<f64>,
}

/// What an agent speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Protocol {
    /// Nothing: it is built in.
    Demo,
}

fn enabled() -> bool {
    true
}

impl Config {
    /// Complaints about values that cannot work, by key.
    pub fn complaints(&self) -> Vec<(&'static str, String)> {
        let mut complaints = Vec::new();
        for (name, agent) in &self.0 {
            if !is_name(name) {
                let wanted = "up to 64 lower-case letters, digits, `-` and `_`";
                complaints.push(("agents", format!("the name `{name}` must be {wanted}")));
            } else if agent.protocol.is_none() && name != DEMO {
                let message = format!("`agents.{name}` needs a `protocol`: `demo`");
                complaints.push(("agents", message));
            }
        }
        complaints
    }
}

/// An agent as it is configured, for those who run the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) protocol: String,
    pub(crate) enabled: bool,
}

impl Config {
    /// Every agent by name, the disabled ones too.
    pub(crate) fn described(&self) -> Vec<Described> {
        let describe = |(name, agent): (String, AgentConfig)| Described {
            name,
            // As it is written in the configuration.
            protocol: serde_json::to_value(agent.protocol.unwrap_or(Protocol::Demo))
                .ok()
                .and_then(|word| word.as_str().map(str::to_owned))
                .unwrap_or_default(),
            enabled: agent.enabled,
        };
        self.with_demo().into_iter().map(describe).collect()
    }

    /// The demo agent is there without being configured.
    fn with_demo(&self) -> BTreeMap<String, AgentConfig> {
        let mut agents = self.0.clone();
        agents.entry(DEMO.to_owned()).or_insert(AgentConfig {
            enabled: true,
            protocol: None,
            auto_approve: None,
            models: Vec::new(),
            modes: Vec::new(),
            max_tokens: None,
            max_temperature: None,
        });
        agents
    }
}

/// Names stand in addresses, environment variables and logs.
fn is_name(name: &str) -> bool {
    let is_fit = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_fit)
}

/// The agents that can be started.
#[derive(Clone, Debug)]
pub(crate) struct Catalog(BTreeMap<String, AgentConfig>);

/// Why an agent was not started.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum StartAgentError {
    /// It is not configured, or disabled.
    #[error("there is no agent `{0}` here")]
    Unknown(String),
}

impl Catalog {
    /// The agents that are configured and enabled, and the demo agent unless it is disabled.
    pub(crate) fn new(config: &Config) -> Self {
        let mut agents = config.with_demo();
        agents.retain(|_, agent| agent.enabled);
        Self(agents)
    }

    /// Their names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Is there an agent of this name?
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// What an agent can do; nothing if there is none of this name.
    pub(crate) fn capabilities(&self, name: &str) -> &'static [&'static str] {
        match self.protocol(name) {
            Some(Protocol::Demo) => demo::CAPABILITIES,
            None => &[],
        }
    }

    /// Can an agent go on with a run that waits for answers, after it was started anew?
    pub(crate) fn can_resume(&self, name: &str) -> bool {
        self.protocol(name) == Some(Protocol::Demo)
    }

    /// May a session answer this agent's harmless permissions by itself?
    pub(crate) fn permits_auto_approve(&self, name: &str) -> bool {
        let configured = self.0.get(name).and_then(|agent| agent.auto_approve);
        configured.unwrap_or(self.protocol(name) == Some(Protocol::Demo))
    }

    /// What is wrong with a change of settings for this agent: the setting, and what it may be.
    pub(crate) fn complaint(
        &self,
        name: &str,
        change: &SettingsChange,
    ) -> Option<(&'static str, String)> {
        let agent = self.0.get(name)?;
        let one_of = |known: &[String]| format!("is not one of: {}", known.join(", "));
        if let Some(model) = &change.model
            && !agent.models.is_empty()
            && !agent.models.contains(model)
        {
            return Some(("model", one_of(&agent.models)));
        }
        if let Some(mode) = &change.mode
            && !agent.modes.contains(mode)
        {
            let fault = if agent.modes.is_empty() {
                format!("cannot be chosen: the agent `{name}` has no modes")
            } else {
                one_of(&agent.modes)
            };
            return Some(("mode", fault));
        }
        let most = agent.max_tokens;
        if let (Some(tokens), Some(most)) = (change.max_tokens, most)
            && tokens > most
        {
            return Some(("maxTokens", format!("is above {most}")));
        }
        let hottest = agent.max_temperature;
        if let (Some(degree), Some(hottest)) = (change.temperature, hottest)
            && degree > hottest
        {
            return Some(("temperature", format!("is above {hottest}")));
        }
        None
    }

    /// Starts an agent for one session.
    ///
    /// It speaks through `back` and waits while that is full. When it is gone, for whatever reason,
    /// `back` is dropped. It ends with `stop` and with its link; `tracker` awaits its task.
    pub(crate) fn start(
        &self,
        name: &str,
        back: mpsc::Sender<FromAgent>,
        stop: &CancellationToken,
        tracker: &TaskTracker,
    ) -> Result<Link, StartAgentError> {
        match self.protocol(name) {
            Some(Protocol::Demo) => Ok(Link::start(stop, tracker, |commands| {
                demo::run(commands, back)
            })),
            None => Err(StartAgentError::Unknown(name.to_owned())),
        }
    }

    /// What an agent speaks, if there is one of this name. One that does not say is the demo agent.
    fn protocol(&self, name: &str) -> Option<Protocol> {
        let agent = self.0.get(name)?;
        Some(agent.protocol.unwrap_or(Protocol::Demo))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> Config {
        serde_json::from_str(json).unwrap()
    }

    fn names(json: &str) -> Vec<String> {
        let catalog = Catalog::new(&config(json));
        catalog.names().map(str::to_owned).collect()
    }

    #[test]
    fn the_demo_agent_is_there_unless_it_is_disabled() {
        assert_eq!(names("{}"), ["demo"]);
        assert_eq!(names(r#"{"demo": {}}"#), ["demo"]);
        assert!(names(r#"{"demo": {"enabled": false}}"#).is_empty());
        let other = r#"{"demo": {"enabled": false}, "toy": {"protocol": "demo"}}"#;
        assert_eq!(names(other), ["toy"]);
    }

    #[test]
    fn whoever_runs_the_gateway_sees_the_disabled_ones_too() {
        let described = config(r#"{"demo": {"enabled": false}, "toy": {"protocol": "demo"}}"#);
        let described: Vec<_> = described
            .described()
            .into_iter()
            .map(|agent| (agent.name, agent.protocol, agent.enabled))
            .collect();
        let demo = || "demo".to_owned();
        assert_eq!(
            described,
            [(demo(), demo(), false), ("toy".into(), demo(), true)]
        );
    }

    #[test]
    fn an_unknown_protocol_or_key_is_refused() {
        for json in [
            r#"{"mine": {"protocol": "telepathy"}}"#,
            r#"{"mine": {"protocol": "demo", "comand": []}}"#,
        ] {
            assert!(serde_json::from_str::<Config>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn an_agent_without_a_protocol_or_with_an_odd_name_is_complained_about() {
        assert!(
            config(r#"{"demo": {"enabled": false}}"#)
                .complaints()
                .is_empty()
        );
        for (json, part) in [
            (r#"{"mine": {}}"#, "`agents.mine` needs a `protocol`"),
            (r#"{"my agent": {"protocol": "demo"}}"#, "`my agent`"),
        ] {
            let complaints = config(json).complaints();
            assert_eq!(complaints.len(), 1);
            assert_eq!(complaints[0].0, "agents");
            assert!(complaints[0].1.contains(part), "{}", complaints[0].1);
        }
    }

    #[test]
    fn settings_stay_within_what_the_agent_was_given() {
        let json = r#"{"toy": {"protocol": "demo", "models": ["a", "b"], "modes": ["ask"],
            "max_tokens": 100, "max_temperature": 0.5}}"#;
        let catalog = Catalog::new(&config(json));
        let none = SettingsChange::default;
        let wrong = |agent: &str, change: SettingsChange| {
            catalog
                .complaint(agent, &change)
                .map(|(setting, _)| setting)
        };
        let model = |name: &str| SettingsChange {
            model: Some(name.into()),
            ..none()
        };
        let mode = |name: &str| SettingsChange {
            mode: Some(name.into()),
            ..none()
        };
        assert_eq!(wrong("toy", model("a")), None);
        assert_eq!(wrong("toy", model("c")), Some("model"));
        assert_eq!(wrong("demo", model("c")), None);
        assert_eq!(wrong("toy", mode("ask")), None);
        assert_eq!(wrong("demo", mode("ask")), Some("mode"));
        let tokens = Some(101);
        let max_tokens = SettingsChange {
            max_tokens: tokens,
            ..none()
        };
        assert_eq!(wrong("toy", max_tokens), Some("maxTokens"));
        let temperature = SettingsChange {
            temperature: Some(0.6),
            ..none()
        };
        assert_eq!(wrong("toy", temperature), Some("temperature"));
    }

    #[test]
    fn only_the_demo_agent_may_be_answered_for_without_a_word_of_the_operator() {
        let json = r#"{"strict": {"protocol": "demo", "auto_approve": false}}"#;
        let catalog = Catalog::new(&config(json));
        assert!(catalog.permits_auto_approve("demo"));
        assert!(!catalog.permits_auto_approve("strict"));
        assert!(!catalog.permits_auto_approve("unknown"));
    }

    #[tokio::test]
    async fn an_agent_that_is_not_in_the_catalog_cannot_be_started() {
        let catalog = Catalog::new(&config(r#"{"demo": {"enabled": false}}"#));
        assert!(!catalog.contains("demo"));
        assert!(catalog.capabilities("demo").is_empty());
        let (back, _heard) = mpsc::channel(1);
        let started = catalog.start("demo", back, &CancellationToken::new(), &TaskTracker::new());
        assert_eq!(
            started.unwrap_err(),
            StartAgentError::Unknown("demo".into())
        );
    }
}
