//! The settings of a session, changed one by one.

use serde::{Deserialize, Serialize};

use crate::domain::command::SettingsChange;

/// The settings of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Answer harmless permissions without asking.
    pub(crate) auto_approve: bool,
    /// Which model.
    pub(crate) model: String,
    /// How long an answer may be.
    pub(crate) max_tokens: u32,
    /// How adventurous the model is.
    pub(crate) temperature: f64,
    /// Which of the agent's own modes, if somebody has chosen.
    #[serde(default)]
    pub(crate) mode: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            auto_approve: false,
            model: "default".to_owned(),
            max_tokens: 4096,
            temperature: 1.0,
            mode: None,
        }
    }
}

impl Settings {
    /// What somebody has chosen: only that is told to agents, which have defaults of their own.
    pub(crate) fn chosen(&self) -> SettingsChange {
        let usual = Self::default();
        SettingsChange {
            auto_approve: (self.auto_approve != usual.auto_approve).then_some(self.auto_approve),
            model: (self.model != usual.model).then(|| self.model.clone()),
            max_tokens: (self.max_tokens != usual.max_tokens).then_some(self.max_tokens),
            temperature: Some(self.temperature)
                .filter(|chosen| (chosen - usual.temperature).abs() > 0.0),
            mode: self.mode.clone(),
        }
    }

    /// Takes over what is mentioned. A temperature that is no number has no stored form: it stays.
    pub(super) fn change(&mut self, change: &SettingsChange) {
        let SettingsChange {
            auto_approve,
            model,
            max_tokens,
            temperature,
            mode,
        } = change;
        self.auto_approve = auto_approve.unwrap_or(self.auto_approve);
        if let Some(model) = model {
            self.model.clone_from(model);
        }
        self.max_tokens = max_tokens.unwrap_or(self.max_tokens);
        self.temperature = temperature
            .filter(|temperature| temperature.is_finite())
            .unwrap_or(self.temperature);
        if mode.is_some() {
            self.mode.clone_from(mode);
        }
    }
}
