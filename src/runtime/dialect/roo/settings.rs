//! The settings of a task, which Roo takes only at its beginning. Pure.

use serde_json::{Map, Value, json};

use crate::domain::command::{Mode, SettingsChange};
use crate::runtime::dialect::{Setup, unsupported};
use crate::runtime::talk::Declined;

/// What was chosen in this session, and the mode that its task is in.
#[derive(Debug, Default)]
pub(super) struct Settings {
    chosen: SettingsChange,
    /// As far as it is known.
    pub(super) mode: Option<String>,
}

/// Does a task that has begun suit a prompt?
pub(super) enum Fit {
    /// Yes.
    Well,
    /// Somewhat: a person should read this.
    Loosely(String),
    /// No.
    Not(Declined),
}

impl Settings {
    /// Something was chosen. Is it anything that Roo knows?
    pub(super) fn change(&mut self, change: SettingsChange) -> bool {
        let chosen = &mut self.chosen;
        let known = change.model.is_some()
            || change.max_tokens.is_some()
            || change.temperature.is_some()
            || change.mode.is_some();
        chosen.model = change.model.or(chosen.model.take());
        chosen.max_tokens = change.max_tokens.or(chosen.max_tokens);
        chosen.temperature = change.temperature.or(chosen.temperature);
        chosen.mode = change.mode.or(chosen.mode.take());
        known
    }

    /// The configuration of a new task, which is in that mode from now on. The mode is always
    /// named: Roo would keep the one of the task before.
    pub(super) fn begin(&mut self, setup: &Setup, mode: Mode) -> Value {
        let given = setup.options.get("configuration");
        let given = given.and_then(Value::as_object);
        let mut configuration = given.cloned().unwrap_or_default();
        self.lay_over(setup, &mut configuration);
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

    fn lay_over(&self, setup: &Setup, configuration: &mut Map<String, Value>) {
        let chosen = &self.chosen;
        let model_key = setup.option("model_key").unwrap_or("apiModelId");
        for (name, value) in [
            (model_key, chosen.model.as_ref().map(|model| json!(model))),
            ("modelMaxTokens", chosen.max_tokens.map(|most| json!(most))),
            (
                "modelTemperature",
                chosen.temperature.map(|warm| json!(warm)),
            ),
        ] {
            if let Some(value) = value {
                configuration.insert(name.to_owned(), value);
            }
        }
    }

    /// A task keeps its mode unless Roo itself changes it.
    pub(super) fn fit(&self, setup: &Setup, wanted: Mode) -> Fit {
        let slug = plan_mode(setup);
        let planning = self.mode.as_deref() == Some(slug);
        match wanted {
            Mode::Plan if !planning => {
                let what = "begin to plan in the middle of a task";
                Fit::Not(unsupported(&setup.agent, what))
            }
            Mode::Act if planning => {
                let text =
                    format!("Roo is still in its mode `{slug}` and leaves it by itself only.");
                Fit::Loosely(text)
            }
            _ => Fit::Well,
        }
    }
}

fn plan_mode(setup: &Setup) -> &str {
    setup.option("plan_mode").unwrap_or("architect")
}
