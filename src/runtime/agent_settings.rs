//! Agent settings: the ones that an agent takes, by its protocol and its configuration.

use super::catalog::Catalog;
use super::config::AgentConfig;
use super::dialect::CarriedSettings;
use crate::domain::command::SettingsChange;
use crate::domain::error_code::ErrorCode;

/// Settings with a field of their own, by their names on the wire.
const NAMED: [&str; 4] = ["model", "maxTokens", "temperature", "mode"];

/// Why a setting was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingRefused {
    pub(crate) code: ErrorCode,
    /// Its name on the wire.
    pub(crate) setting: String,
    /// Completes the sentence that the setting begins.
    pub(crate) fault: String,
}

impl SettingRefused {
    fn invalid(setting: &str, fault: impl Into<String>) -> Self {
        Self {
            code: ErrorCode::ValidationError,
            setting: setting.to_owned(),
            fault: fault.into(),
        }
    }
}

impl Catalog {
    /// Whether a session may approve this agent's harmless permissions by itself.
    pub(crate) fn permits_auto_approve(&self, name: &str) -> bool {
        let Some(entry) = self.entry(name) else {
            return false;
        };
        entry.config.auto_approve.unwrap_or(entry.config.is_demo())
    }

    /// The settings with which the operator lets this agent begin.
    pub(crate) fn configured_settings(&self, name: &str) -> SettingsChange {
        let option = |option: &str| {
            let value = self.entry(name)?.config.options.get(option)?;
            value.as_str().map(str::to_owned)
        };
        SettingsChange {
            model: option("model"),
            ..SettingsChange::default()
        }
    }

    /// Refuses a change with a setting that this agent does not take or does not allow.
    pub(crate) fn check_settings(
        &self,
        name: &str,
        change: &SettingsChange,
    ) -> Result<(), SettingRefused> {
        let Some(entry) = self.entry(name) else {
            return Ok(());
        };
        if change.auto_approve == Some(true) && !self.permits_auto_approve(name) {
            let fault = format!(
                "cannot be switched on: the operator has not allowed it for the agent `{name}` \
                 (`agents.{name}.auto_approve`)"
            );
            return Err(SettingRefused::invalid("autoApprove", fault));
        }
        self.check_own_names(name, &entry.config, change)?;
        let carried = entry.config.dialect().map(|protocol| protocol.settings);
        check_carried(name, carried, change)?;
        check_bounds(name, &entry.config, change)
    }

    /// The agent's own settings: those that the operator has set stay, and those about approvals are as
    /// `autoApprove`.
    fn check_own_names(
        &self,
        name: &str,
        config: &AgentConfig,
        change: &SettingsChange,
    ) -> Result<(), SettingRefused> {
        let fixed = config.options.get("configuration");
        for setting in change.other.keys() {
            if fixed.is_some_and(|fixed| fixed.get(setting).is_some()) {
                let fault = format!("is set by the operator of the agent `{name}`");
                return Err(SettingRefused::invalid(setting, fault));
            }
            if is_about_approval(setting) && !self.permits_auto_approve(name) {
                let fault = format!(
                    "cannot be changed: the operator has not allowed the agent `{name}` to act \
                     without approval (`agents.{name}.auto_approve`)"
                );
                return Err(SettingRefused::invalid(setting, fault));
            }
        }
        Ok(())
    }
}

/// Whether a setting of Roo decides what needs no approval.
fn is_about_approval(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    ["approv", "alwaysallow", "allowedcommands", "deniedcommands"]
        .iter()
        .any(|part| setting.contains(part))
}

fn check_carried(
    agent: &str,
    carried: Option<CarriedSettings>,
    change: &SettingsChange,
) -> Result<(), SettingRefused> {
    let known = match carried {
        Some(CarriedSettings::Any) => return Ok(()),
        Some(CarriedSettings::Only(known)) => known,
        // The demo agent keeps them for show.
        None => NAMED.as_slice(),
    };
    if let Some(unknown) = change.other.keys().next() {
        let mut names = vec!["autoApprove"];
        names.extend(known);
        let names = names.join(", ");
        let fault = format!("is not a setting of the agent `{agent}`, which has: {names}");
        return Err(SettingRefused::invalid(unknown, fault));
    }
    let wanted = [
        change.model.is_some(),
        change.max_tokens.is_some(),
        change.temperature.is_some(),
        change.mode.is_some(),
    ];
    let mut wanted = NAMED.iter().zip(wanted).filter(|(_, wanted)| *wanted);
    match wanted.find(|(name, _)| !known.contains(name)) {
        None => Ok(()),
        Some((name, _)) => Err(SettingRefused {
            code: ErrorCode::Unsupported,
            setting: (*name).to_owned(),
            fault: format!("cannot be chosen: the agent `{agent}` does not take it"),
        }),
    }
}

/// The bounds that the operator has set.
fn check_bounds(
    name: &str,
    agent: &AgentConfig,
    change: &SettingsChange,
) -> Result<(), SettingRefused> {
    let one_of = |known: &[String]| format!("is not one of: {}", known.join(", "));
    if let Some(model) = &change.model
        && !agent.models.is_empty()
        && !agent.models.contains(model)
    {
        return Err(SettingRefused::invalid("model", one_of(&agent.models)));
    }
    if let Some(mode) = &change.mode
        && !agent.modes.contains(mode)
    {
        let fault = if agent.modes.is_empty() {
            format!("cannot be chosen: the agent `{name}` has no modes")
        } else {
            one_of(&agent.modes)
        };
        return Err(SettingRefused::invalid("mode", fault));
    }
    if let (Some(tokens), Some(most)) = (change.max_tokens, agent.max_tokens)
        && tokens > most
    {
        let fault = format!("is above {most}");
        return Err(SettingRefused::invalid("maxTokens", fault));
    }
    if let (Some(degree), Some(hottest)) = (change.temperature, agent.max_temperature)
        && degree > hottest
    {
        let fault = format!("is above {hottest}");
        return Err(SettingRefused::invalid("temperature", fault));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::catalog::tests::catalog;
    use super::*;

    fn model(name: &str) -> SettingsChange {
        SettingsChange {
            model: Some(name.into()),
            ..SettingsChange::default()
        }
    }

    fn mode(name: &str) -> SettingsChange {
        SettingsChange {
            mode: Some(name.into()),
            ..SettingsChange::default()
        }
    }

    fn refused(catalog: &Catalog, agent: &str, change: &SettingsChange) -> Option<String> {
        let checked = catalog.check_settings(agent, change);
        checked.err().map(|refused| refused.setting)
    }

    #[test]
    fn settings_outside_the_configured_bounds_are_refused() {
        let json = r#"{"toy": {"protocol": "demo", "models": ["a", "b"], "modes": ["ask"],
            "max_tokens": 100, "max_temperature": 0.5}}"#;
        let catalog = catalog(json);
        let wrong = |agent: &str, change: SettingsChange| refused(&catalog, agent, &change);
        assert_eq!(wrong("toy", model("a")), None);
        assert_eq!(wrong("toy", model("c")).as_deref(), Some("model"));
        assert_eq!(wrong("demo", model("c")), None);
        assert_eq!(wrong("toy", mode("ask")), None);
        assert_eq!(wrong("demo", mode("ask")).as_deref(), Some("mode"));
        let max_tokens = SettingsChange {
            max_tokens: Some(101),
            ..SettingsChange::default()
        };
        assert_eq!(wrong("toy", max_tokens).as_deref(), Some("maxTokens"));
        let temperature = SettingsChange {
            temperature: Some(0.6),
            ..SettingsChange::default()
        };
        assert_eq!(wrong("toy", temperature).as_deref(), Some("temperature"));
    }

    #[test]
    fn only_the_demo_agent_is_auto_approved_without_configuration() {
        let json = r#"{"strict": {"protocol": "demo", "auto_approve": false}}"#;
        let catalog = catalog(json);
        assert!(catalog.permits_auto_approve("demo"));
        assert!(!catalog.permits_auto_approve("strict"));
        assert!(!catalog.permits_auto_approve("unknown"));
        let switched = |on| SettingsChange {
            auto_approve: Some(on),
            ..SettingsChange::default()
        };
        assert_eq!(refused(&catalog, "demo", &switched(true)), None);
        assert_eq!(refused(&catalog, "strict", &switched(false)), None);
        let wrong = refused(&catalog, "strict", &switched(true));
        assert_eq!(wrong.as_deref(), Some("autoApprove"));
    }

    #[test]
    fn a_setting_that_the_protocol_does_not_carry_is_refused_by_name() {
        let json = r#"{"core": {"protocol": "nous", "socket": "/s"},
            "open": {"protocol": "remoteui", "socket": "/s"},
            "roo": {"protocol": "roo", "socket": "/s", "options": {"configuration": {"style": 1}}},
            "codex": {"protocol": "codex-app-server", "command": ["codex"]}}"#;
        let catalog = catalog(json);
        let unsupported = catalog.check_settings("core", &model("m")).unwrap_err();
        assert_eq!(unsupported.code, ErrorCode::Unsupported);
        assert!(unsupported.fault.contains("`core`"), "{unsupported:?}");
        assert_eq!(refused(&catalog, "codex", &model("m")), None);
        let own = SettingsChange {
            other: [("style".to_owned(), json!("terse"))].into_iter().collect(),
            ..SettingsChange::default()
        };
        assert_eq!(refused(&catalog, "open", &own), None);
        assert_eq!(refused(&catalog, "roo", &own).as_deref(), Some("style"));
        let approving = SettingsChange {
            other: [("alwaysAllowExecute".to_owned(), json!(true))]
                .into_iter()
                .collect(),
            ..SettingsChange::default()
        };
        let wrong = refused(&catalog, "open", &approving);
        assert_eq!(wrong.as_deref(), Some("alwaysAllowExecute"));
        let unknown = catalog.check_settings("codex", &own).unwrap_err();
        assert_eq!(unknown.code, ErrorCode::ValidationError);
        assert!(unknown.fault.ends_with("autoApprove, model"), "{unknown:?}");
    }
}
