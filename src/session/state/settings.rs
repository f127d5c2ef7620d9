//! Settings of a session.

use serde::{Deserialize, Serialize};

use crate::domain::command::SettingsChange;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Grant permissions below critical severity.
    pub(crate) auto_approve: bool,
    pub(crate) model: String,
    pub(crate) max_tokens: u32,
    pub(crate) temperature: f64,
    /// The agent's own mode, if one was chosen.
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
    /// The values that differ from the default: only these are sent to agents, which have defaults of
    /// their own.
    pub(crate) fn chosen(&self) -> SettingsChange {
        let default = Self::default();
        SettingsChange {
            auto_approve: (self.auto_approve != default.auto_approve).then_some(self.auto_approve),
            model: (self.model != default.model).then(|| self.model.clone()),
            max_tokens: (self.max_tokens != default.max_tokens).then_some(self.max_tokens),
            temperature: Some(self.temperature)
                .filter(|chosen| (chosen - default.temperature).abs() > 0.0),
            mode: self.mode.clone(),
        }
    }

    /// Applies the values that are present. A temperature that is not finite has no stored form and is
    /// ignored.
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
