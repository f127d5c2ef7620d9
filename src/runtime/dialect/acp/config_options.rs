//! Config options: the modes and models of an agent, and which are in force.
//!
//! Agents offer them as `configOptions` of the session or, older ones, as `modes` and `models`. Where
//! an agent has both, `configOptions` count.

use serde_json::{Value, json};

use super::super::query_answers;
use crate::domain::command::{Mode, SettingsChange};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConfigKind {
    Mode,
    Model,
}

/// The mode or model of a session, as something to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConfigTarget {
    pub(super) kind: ConfigKind,
    /// None: it is set by a method of its own.
    config_id: Option<String>,
}

impl ConfigTarget {
    pub(super) fn method(&self) -> &'static str {
        match (&self.config_id, self.kind) {
            (Some(_), _) => "session/set_config_option",
            (None, ConfigKind::Mode) => "session/set_mode",
            (None, ConfigKind::Model) => "session/set_model",
        }
    }

    pub(super) fn params(&self, session: &str, value: &str) -> Value {
        match (&self.config_id, self.kind) {
            (Some(id), _) => {
                json!({ "sessionId": session, "configId": id, "value": value })
            }
            (None, ConfigKind::Mode) => json!({ "sessionId": session, "modeId": value }),
            (None, ConfigKind::Model) => json!({ "sessionId": session, "modelId": value }),
        }
    }

    pub(super) fn noun(&self) -> &'static str {
        match self.kind {
            ConfigKind::Mode => "mode",
            ConfigKind::Model => "model",
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct ConfigValue {
    id: String,
    name: String,
}

impl ConfigValue {
    fn is_called(&self, name: &str) -> bool {
        self.id == name || self.name.eq_ignore_ascii_case(name)
    }

    /// Some agents have URLs for ids, with the mode's name at the end.
    fn is_mode(&self, word: &str) -> bool {
        let last = self.id.rsplit(['#', '/', ':']).next().unwrap_or_default();
        last.eq_ignore_ascii_case(word) || self.name.eq_ignore_ascii_case(word)
    }

    fn is_plan(&self) -> bool {
        self.is_mode("plan") || self.name.eq_ignore_ascii_case("plan mode")
    }
}

#[derive(Debug, Default)]
struct ConfigOption {
    config_id: Option<String>,
    values: Vec<ConfigValue>,
    current: Option<String>,
}

impl ConfigOption {
    fn find(&self, name: &str) -> Option<&ConfigValue> {
        let exact = self.values.iter().find(|value| value.id == name);
        exact.or_else(|| self.values.iter().find(|value| value.is_called(name)))
    }

    /// One of `configOptions`; its values may come in groups.
    fn parse(option: &Value) -> Self {
        let mut values = Vec::new();
        for value in list(&option["options"]) {
            match &value["options"] {
                Value::Array(group) => values.extend(group.iter().filter_map(option_value)),
                _ => values.extend(option_value(value)),
            }
        }
        Self {
            config_id: option["id"].as_str().map(str::to_owned),
            values,
            current: option["currentValue"].as_str().map(str::to_owned),
        }
    }

    fn from_legacy_state(values: &Value, id: &str, current: &Value) -> Self {
        Self {
            config_id: None,
            values: list(values)
                .iter()
                .filter_map(|value| config_value(&value[id], value))
                .collect(),
            current: current.as_str().map(str::to_owned),
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn option_value(value: &Value) -> Option<ConfigValue> {
    config_value(&value["value"], value)
}

fn config_value(id: &Value, value: &Value) -> Option<ConfigValue> {
    let id = id.as_str()?;
    Some(ConfigValue {
        id: id.to_owned(),
        name: value["name"].as_str().unwrap_or(id).to_owned(),
    })
}

#[derive(Debug, Default)]
pub(super) struct ConfigOptions {
    modes: ConfigOption,
    models: ConfigOption,
    /// The mode a user chose for acting.
    requested_mode: Option<String>,
    /// The mode other than planning that the agent was in last.
    last_acting_mode: Option<String>,
}

impl ConfigOptions {
    /// Reads the result of `session/new`, `session/resume` or `session/load`.
    pub(super) fn read_session(&mut self, result: &Value) {
        let state = &result["modes"];
        if state.is_object() {
            let all = &state["availableModes"];
            self.modes = ConfigOption::from_legacy_state(all, "id", &state["currentModeId"]);
        }
        let state = &result["models"];
        if state.is_object() {
            let all = &state["availableModels"];
            self.models = ConfigOption::from_legacy_state(all, "modelId", &state["currentModelId"]);
        }
        self.read_config_options(result);
        self.remember_acting_mode();
    }

    /// Reads `configOptions`, which are always complete. True if the mode or model changed.
    pub(super) fn read_config_options(&mut self, update: &Value) -> bool {
        let before = (self.modes.current.clone(), self.models.current.clone());
        for option in list(&update["configOptions"]) {
            let category = option["category"].as_str().or(option["id"].as_str());
            match category {
                Some("mode") => self.modes = ConfigOption::parse(option),
                Some("model") => self.models = ConfigOption::parse(option),
                _ => {}
            }
        }
        self.remember_acting_mode();
        before != (self.modes.current.clone(), self.models.current.clone())
    }

    /// The agent switched its mode. True if it is another one.
    pub(super) fn mode_changed(&mut self, mode: &str) -> bool {
        let changed = self.modes.current.as_deref() != Some(mode);
        self.modes.current = Some(mode.to_owned());
        self.remember_acting_mode();
        changed
    }

    fn remember_acting_mode(&mut self) {
        if !self.is_planning() && self.modes.current.is_some() {
            self.last_acting_mode.clone_from(&self.modes.current);
        }
    }

    fn option_mut(&mut self, kind: ConfigKind) -> &mut ConfigOption {
        match kind {
            ConfigKind::Mode => &mut self.modes,
            ConfigKind::Model => &mut self.models,
        }
    }

    pub(super) fn target(&mut self, kind: ConfigKind) -> ConfigTarget {
        let config_id = self.option_mut(kind).config_id.clone();
        ConfigTarget { kind, config_id }
    }

    /// A change succeeded; the result may carry the options now in force.
    pub(super) fn applied(&mut self, target: &ConfigTarget, value: &str, result: &Value) {
        self.option_mut(target.kind).current = Some(value.to_owned());
        self.read_config_options(result);
    }

    /// A change failed: which value is in force is unknown.
    pub(super) fn forget_current(&mut self, kind: ConfigKind) {
        self.option_mut(kind).current = None;
    }

    /// The mode and model in force, as far as the agent has told them.
    pub(super) fn settings(&self) -> SettingsChange {
        SettingsChange {
            model: self.models.current.clone(),
            mode: self.modes.current.clone(),
            ..SettingsChange::default()
        }
    }

    pub(super) fn has_modes(&self) -> bool {
        !self.modes.values.is_empty()
    }

    pub(super) fn is_mode(&self, id: &str) -> bool {
        self.modes.values.iter().any(|value| value.id == id)
    }

    pub(super) fn has_models(&self) -> bool {
        !self.models.values.is_empty()
    }

    fn plan_mode(&self) -> Option<&ConfigValue> {
        self.modes.values.iter().find(|value| value.is_plan())
    }

    pub(super) fn can_plan(&self) -> bool {
        self.plan_mode().is_some()
    }

    pub(super) fn is_planning(&self) -> bool {
        let plan = self.plan_mode().map(|value| value.id.as_str());
        plan.is_some() && plan == self.modes.current.as_deref()
    }

    /// Chooses the mode for acting. False if there is none of that name.
    pub(super) fn request_mode(&mut self, name: &str) -> bool {
        let found = self.modes.find(name).map(|value| value.id.clone());
        let known = found.is_some();
        if known {
            self.requested_mode = found;
        }
        known
    }

    /// The mode to switch to before a prompt, if the agent is not in it. An agent that acts in a mode
    /// of its own choice stays in it.
    pub(super) fn mode_for(&self, mode: Mode) -> Option<String> {
        let wanted = match mode {
            Mode::Plan => self.plan_mode()?.id.clone(),
            Mode::Act => self.acting_mode()?,
        };
        Some(wanted).filter(|wanted| self.modes.current.as_ref() != Some(wanted))
    }

    fn acting_mode(&self) -> Option<String> {
        let offered = |wanted: &&String| self.modes.find(wanted).is_some();
        let chosen = self
            .requested_mode
            .as_ref()
            .or(self.last_acting_mode.as_ref())
            .filter(offered);
        let others = || self.modes.values.iter().filter(|value| !value.is_plan());
        let usual = || {
            let words = ["build", "default", "code"].into_iter();
            let mut found = words.filter_map(|word| others().find(|value| value.is_mode(word)));
            found.next().or_else(|| others().next())
        };
        chosen
            .cloned()
            .or_else(|| usual().map(|value| value.id.clone()))
    }

    pub(super) fn find_model(&self, name: &str) -> Option<String> {
        self.models.find(name).map(|value| value.id.clone())
    }

    pub(super) fn is_current_model(&self, id: &str) -> bool {
        self.models.current.as_deref() == Some(id)
    }

    pub(super) fn list_models(&self, provider: &str) -> Value {
        let ids: Vec<&str> = self
            .models
            .values
            .iter()
            .map(|value| value.id.as_str())
            .collect();
        query_answers::models(provider, &ids, self.models.current.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(ids: &[&str], current: &str) -> ConfigOptions {
        let all: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
        let mut config = ConfigOptions::default();
        config
            .read_session(&json!({ "modes": { "availableModes": all, "currentModeId": current } }));
        config
    }

    #[test]
    fn acting_returns_to_the_agents_last_mode_or_else_to_a_default_mode() {
        let first = |ids: &[&str]| modes(ids, "plan").mode_for(Mode::Act);
        assert_eq!(
            first(&["plan", "yolo", "default"]).as_deref(),
            Some("default")
        );
        assert_eq!(
            first(&["x", "plan", "code", "build"]).as_deref(),
            Some("build")
        );
        assert_eq!(first(&["plan", "x", "y"]).as_deref(), Some("x"));
        assert_eq!(first(&["plan"]), None);

        let mut config = modes(&["default", "plan", "careful"], "careful");
        assert_eq!(config.mode_for(Mode::Act), None);
        assert_eq!(config.mode_for(Mode::Plan).as_deref(), Some("plan"));
        assert!(config.mode_changed("plan"));
        assert!(!config.mode_changed("plan"));
        assert_eq!(config.mode_for(Mode::Act).as_deref(), Some("careful"));
    }

    #[test]
    fn a_mode_whose_id_is_a_url_is_known_by_its_last_word() {
        let config = modes(
            &[
                "https://a.example/modes#agent",
                "https://a.example/modes#plan",
            ],
            "",
        );
        let plan = config.mode_for(Mode::Plan);
        assert_eq!(plan.as_deref(), Some("https://a.example/modes#plan"));
    }

    #[test]
    fn models_in_groups_are_found_by_id_and_by_name() {
        let mut config = ConfigOptions::default();
        config.read_session(&json!({ "configOptions": [{
            "id": "llm", "category": "model", "currentValue": "a/1",
            "options": [
                { "group": "a", "name": "A", "options": [{ "value": "a/1", "name": "One" }] },
                { "group": "b", "name": "B", "options": [{ "value": "b/2", "name": "Two" }, 7] },
            ],
        }] }));
        assert_eq!(config.settings().model.as_deref(), Some("a/1"));
        assert_eq!(config.settings().mode, None);
        assert_eq!(config.find_model("two").as_deref(), Some("b/2"));
        assert_eq!(config.find_model("three"), None);
        let list = config.list_models("me");
        assert_eq!(
            list,
            json!({ "provider": "me", "models": ["a/1", "b/2"], "current": "a/1" })
        );
    }
}
