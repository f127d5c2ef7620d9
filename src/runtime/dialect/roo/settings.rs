//! Settings of a task, which Roo takes only at its start. Pure.

use serde_json::{Map, Value, json};

use crate::domain::command::{Mode, SettingsChange};
use crate::runtime::dialect::{Setup, unsupported};
use crate::runtime::messages::Declined;

/// The answer to settings that come while there is a task.
pub(super) const NOT_APPLIED: &str =
    "Roo takes settings only with a new task: they do not change this one.";

/// The settings chosen in this session, and the mode of its task.
#[derive(Debug, Default)]
pub(super) struct Settings {
    chosen: SettingsChange,
    pub(super) mode: Option<String>,
}

/// Does the mode of the task suit a prompt?
pub(super) enum ModeCheck {
    Matches,
    Warn(String),
    Refuse(Declined),
}

impl Settings {
    /// Returns whether Roo knows any of them.
    pub(super) fn change(&mut self, change: SettingsChange) -> bool {
        let chosen = &mut self.chosen;
        let known = change.model.is_some()
            || change.max_tokens.is_some()
            || change.temperature.is_some()
            || change.mode.is_some()
            || !change.other.is_empty();
        chosen.model = change.model.or(chosen.model.take());
        chosen.max_tokens = change.max_tokens.or(chosen.max_tokens);
        chosen.temperature = change.temperature.or(chosen.temperature);
        chosen.mode = change.mode.or(chosen.mode.take());
        chosen.other.extend(change.other);
        known
    }

    /// The configuration of a new task. It always names the mode: Roo would keep that of the task
    /// before.
    pub(super) fn for_new_task(&mut self, setup: &Setup, mode: Mode) -> Value {
        let given = setup.options.get("configuration");
        let given = given.and_then(Value::as_object);
        let mut configuration = given.cloned().unwrap_or_default();
        self.apply_chosen(setup, &mut configuration);
        let slug = match mode {
            Mode::Plan => plan_mode(setup),
            Mode::Act => (self.chosen.mode.as_deref())
                .or(setup.option("act_mode"))
                .or(given.and_then(|given| given.get("mode")?.as_str()))
                .unwrap_or("code"),
        };
        configuration.insert("mode".into(), json!(slug));
        self.mode = Some(slug.to_owned());
        Value::Object(configuration)
    }

    fn apply_chosen(&self, setup: &Setup, configuration: &mut Map<String, Value>) {
        let chosen = &self.chosen;
        configuration.extend(chosen.other.clone());
        let model_key = setup.option("model_key").unwrap_or("apiModelId");
        for (name, value) in [
            (model_key, chosen.model.as_ref().map(|model| json!(model))),
            (
                "modelMaxTokens",
                chosen.max_tokens.map(|tokens| json!(tokens)),
            ),
            (
                "modelTemperature",
                chosen.temperature.map(|temperature| json!(temperature)),
            ),
        ] {
            if let Some(value) = value {
                configuration.insert(name.to_owned(), value);
            }
        }
    }

    pub(super) fn check_mode(&self, setup: &Setup, wanted: Mode) -> ModeCheck {
        let slug = plan_mode(setup);
        let planning = self.mode.as_deref() == Some(slug);
        match wanted {
            Mode::Plan if !planning => {
                let what = "begin to plan in the middle of a task";
                ModeCheck::Refuse(unsupported(&setup.agent, what))
            }
            Mode::Act if planning => {
                let text =
                    format!("Roo is still in its mode `{slug}` and leaves it by itself only.");
                ModeCheck::Warn(text)
            }
            _ => ModeCheck::Matches,
        }
    }
}

fn plan_mode(setup: &Setup) -> &str {
    setup.option("plan_mode").unwrap_or("architect")
}
