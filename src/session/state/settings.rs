//! Settings of a session: those that were chosen in it, and those in force as far as known.
//!
//! No value is invented: a setting that was neither chosen nor reported is absent.

use serde::{Deserialize, Serialize};

use crate::domain::command::SettingsChange;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredSettings", into = "StoredSettings")]
pub(crate) struct Settings {
    /// Chosen by members: sent to every agent that starts, also if a value equals the agent's default.
    pub(crate) chosen: SettingsChange,
    /// In force, as last chosen or reported. `auto_approve` is the gateway's own and not in here.
    pub(crate) current: SettingsChange,
}

impl Settings {
    /// Grant permissions below critical severity.
    pub(crate) fn auto_approve(&self) -> bool {
        self.chosen.auto_approve.unwrap_or(false)
    }

    pub(super) fn choose(&mut self, change: &SettingsChange) {
        self.chosen.merge(change);
        self.report(change);
    }

    pub(super) fn report(&mut self, reported: &SettingsChange) {
        self.current.merge(reported);
        self.current.auto_approve = None;
    }

    /// The part of a report that is new. What an agent does about approvals is its own matter.
    pub(crate) fn news_in(&self, mut reported: SettingsChange) -> SettingsChange {
        reported.auto_approve = None;
        reported.without(&self.current)
    }

    /// Fills in what the operator configured for the agent, where nothing was chosen or reported.
    pub(crate) fn fill(&mut self, configured: &SettingsChange) {
        let known = std::mem::replace(&mut self.current, configured.clone());
        self.report(&known);
    }
}

/// The stored form. Its first five fields are all that earlier versions know: they had a placeholder
/// for what was not chosen, which is not taken for a choice.
#[derive(Serialize, Deserialize)]
struct StoredSettings {
    auto_approve: bool,
    model: String,
    max_tokens: u32,
    temperature: f64,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    chosen: Option<SettingsChange>,
    #[serde(default)]
    current: Option<SettingsChange>,
}

const NO_MODEL: &str = "default";
const NO_MAX_TOKENS: u32 = 4096;
const NO_TEMPERATURE: f64 = 1.0;

impl From<StoredSettings> for Settings {
    fn from(stored: StoredSettings) -> Self {
        if let (Some(chosen), Some(current)) = (stored.chosen, stored.current) {
            return Self { chosen, current };
        }
        let temperature = stored.temperature;
        let mut settings = Self::default();
        settings.choose(&SettingsChange {
            auto_approve: stored.auto_approve.then_some(true),
            model: Some(stored.model).filter(|model| model != NO_MODEL),
            max_tokens: Some(stored.max_tokens).filter(|count| *count != NO_MAX_TOKENS),
            temperature: ((temperature - NO_TEMPERATURE).abs() > 0.0).then_some(temperature),
            mode: stored.mode,
            ..SettingsChange::default()
        });
        settings
    }
}

impl From<Settings> for StoredSettings {
    fn from(settings: Settings) -> Self {
        let current = &settings.current;
        Self {
            auto_approve: settings.auto_approve(),
            model: current.model.clone().unwrap_or_else(|| NO_MODEL.into()),
            max_tokens: current.max_tokens.unwrap_or(NO_MAX_TOKENS),
            temperature: current.temperature.unwrap_or(NO_TEMPERATURE),
            mode: current.mode.clone(),
            chosen: Some(settings.chosen),
            current: Some(settings.current),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn model(name: &str) -> SettingsChange {
        SettingsChange {
            model: Some(name.into()),
            ..SettingsChange::default()
        }
    }

    #[test]
    fn a_choice_that_equals_a_default_is_kept_in_storage() {
        let mut settings = Settings::default();
        let choice = SettingsChange {
            max_tokens: Some(4096),
            temperature: Some(1.0),
            ..model("default")
        };
        settings.choose(&choice);
        let stored = serde_json::to_value(&settings).unwrap();
        let read: Settings = serde_json::from_value(stored).unwrap();
        assert_eq!((&read, &read.chosen), (&settings, &choice));
    }

    #[test]
    fn a_placeholder_of_an_earlier_version_is_no_choice() {
        let stored = json!({
            "auto_approve": false, "model": "default", "max_tokens": 4096, "temperature": 1.0,
        });
        let read: Settings = serde_json::from_value(stored).unwrap();
        assert_eq!(read, Settings::default());
        let stored = json!({
            "auto_approve": true, "model": "large", "max_tokens": 4096, "temperature": 1.0,
        });
        let read: Settings = serde_json::from_value(stored).unwrap();
        assert!(read.auto_approve());
        assert_eq!(read.current, model("large"));
    }

    #[test]
    fn a_report_replaces_the_shown_value_and_keeps_the_choice() {
        let mut settings = Settings::default();
        settings.choose(&model("large"));
        let report = SettingsChange {
            auto_approve: Some(true),
            ..model("small")
        };
        let news = settings.news_in(report);
        assert_eq!(news, model("small"));
        settings.report(&news);
        assert!(settings.news_in(model("small")).is_empty());
        assert_eq!(settings.chosen, model("large"));
        assert_eq!(settings.current, model("small"));
        assert!(!settings.auto_approve());
    }

    #[test]
    fn what_the_operator_configured_is_shown_until_something_else_is_known() {
        let mut settings = Settings::default();
        settings.fill(&model("configured"));
        assert_eq!(settings.current, model("configured"));
        settings.report(&model("reported"));
        settings.fill(&model("configured"));
        assert_eq!(settings.current, model("reported"));
    }
}
