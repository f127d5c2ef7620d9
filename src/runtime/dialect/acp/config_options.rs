//! The modes and models that an agent lets us choose from.
//!
//! There are two ways to offer them: as options of the session (`configOptions`), or, by older
//! agents, as `modes` and `models`. Where an agent has both, the options count.

use serde_json::{Value, json};

use crate::domain::command::Mode;

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Mode,
    Model,
}

/// How another one is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) choice: Choice,
    /// The option that it is, if it is one.
    option: Option<String>,
}

impl Way {
    pub(super) fn method(&self) -> &'static str {
        match (&self.option, self.choice) {
            (Some(_), _) => "session/set_config_option",
            (None, Choice::Mode) => "session/set_mode",
            (None, Choice::Model) => "session/set_model",
        }
    }

    pub(super) fn params(&self, session: &str, value: &str) -> Value {
        match (&self.option, self.choice) {
            (Some(option), _) => {
                json!({ "sessionId": session, "configId": option, "value": value })
            }
            (None, Choice::Mode) => json!({ "sessionId": session, "modeId": value }),
            (None, Choice::Model) => json!({ "sessionId": session, "modelId": value }),
        }
    }

    /// What people call it.
    pub(super) fn noun(&self) -> &'static str {
        match self.choice {
            Choice::Mode => "mode",
            Choice::Model => "model",
        }
    }
}

/// One that can be chosen.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    id: String,
    name: String,
}

impl Entry {
    fn is_called(&self, name: &str) -> bool {
        self.id == name || self.name.eq_ignore_ascii_case(name)
    }

    /// Is it the mode of that name? Some agents have addresses for ids, with the word at the end.
    fn is_mode(&self, word: &str) -> bool {
        let last = self.id.rsplit(['#', '/', ':']).next().unwrap_or_default();
        last.eq_ignore_ascii_case(word) || self.name.eq_ignore_ascii_case(word)
    }

    fn is_plan(&self) -> bool {
        self.is_mode("plan") || self.name.eq_ignore_ascii_case("plan mode")
    }
}

/// All of one kind, and which one it is now.
#[derive(Debug, Default)]
struct Selection {
    option: Option<String>,
    entries: Vec<Entry>,
    current: Option<String>,
}

impl Selection {
    fn find(&self, name: &str) -> Option<&Entry> {
        let exactly = self.entries.iter().find(|entry| entry.id == name);
        exactly.or_else(|| self.entries.iter().find(|entry| entry.is_called(name)))
    }

    /// From an option of the session. Its values may come in groups.
    fn of_option(option: &Value) -> Self {
        let mut entries = Vec::new();
        for value in list(&option["options"]) {
            match &value["options"] {
                Value::Array(group) => entries.extend(group.iter().filter_map(of_value)),
                _ => entries.extend(of_value(value)),
            }
        }
        Self {
            option: option["id"].as_str().map(str::to_owned),
            entries,
            current: option["currentValue"].as_str().map(str::to_owned),
        }
    }

    /// From `modes` or `models`.
    fn of_state(entries: &Value, id: &str, current: &Value) -> Self {
        Self {
            option: None,
            entries: list(entries)
                .iter()
                .filter_map(|value| entry(&value[id], value))
                .collect(),
            current: current.as_str().map(str::to_owned),
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn of_value(value: &Value) -> Option<Entry> {
    entry(&value["value"], value)
}

fn entry(id: &Value, value: &Value) -> Option<Entry> {
    let id = id.as_str()?;
    Some(Entry {
        id: id.to_owned(),
        name: value["name"].as_str().unwrap_or(id).to_owned(),
    })
}

/// What the agent offers, and what was chosen.
#[derive(Debug, Default)]
pub(super) struct Choices {
    modes: Selection,
    models: Selection,
    /// The mode that somebody wants for acting.
    wish: Option<String>,
    /// The mode for acting that the agent was in last.
    home: Option<String>,
}

impl Choices {
    /// From the answer that begins or takes up a conversation.
    pub(super) fn learn(&mut self, result: &Value) {
        let state = &result["modes"];
        if state.is_object() {
            let all = &state["availableModes"];
            self.modes = Selection::of_state(all, "id", &state["currentModeId"]);
        }
        let state = &result["models"];
        if state.is_object() {
            let all = &state["availableModels"];
            self.models = Selection::of_state(all, "modelId", &state["currentModelId"]);
        }
        self.learn_options(result);
        self.note_home();
    }

    /// From the options of the session, all of which are always told. True if another mode or model
    /// is in force now.
    pub(super) fn learn_options(&mut self, told: &Value) -> bool {
        let before = (self.modes.current.clone(), self.models.current.clone());
        for option in list(&told["configOptions"]) {
            let category = option["category"].as_str().or(option["id"].as_str());
            match category {
                Some("mode") => self.modes = Selection::of_option(option),
                Some("model") => self.models = Selection::of_option(option),
                _ => {}
            }
        }
        self.note_home();
        before != (self.modes.current.clone(), self.models.current.clone())
    }

    /// The agent is in another mode now. True if that is news.
    pub(super) fn moved(&mut self, mode: &str) -> bool {
        let news = self.modes.current.as_deref() != Some(mode);
        self.modes.current = Some(mode.to_owned());
        self.note_home();
        news
    }

    fn note_home(&mut self) {
        if !self.is_planning() && self.modes.current.is_some() {
            self.home.clone_from(&self.modes.current);
        }
    }

    fn selection(&mut self, choice: Choice) -> &mut Selection {
        match choice {
            Choice::Mode => &mut self.modes,
            Choice::Model => &mut self.models,
        }
    }

    /// How another one is chosen.
    pub(super) fn way(&mut self, choice: Choice) -> Way {
        let option = self.selection(choice).option.clone();
        Way { choice, option }
    }

    /// Another one was chosen; the agent may tell what is in force now.
    pub(super) fn was_set(&mut self, way: &Way, value: &str, result: &Value) {
        self.selection(way.choice).current = Some(value.to_owned());
        self.learn_options(result);
    }

    /// Nobody knows any more which one it is.
    pub(super) fn is_unknown(&mut self, choice: Choice) {
        self.selection(choice).current = None;
    }

    pub(super) fn has_modes(&self) -> bool {
        !self.modes.entries.is_empty()
    }

    /// Is this the agent's own name for a mode?
    pub(super) fn is_mode(&self, id: &str) -> bool {
        self.modes.entries.iter().any(|entry| entry.id == id)
    }

    pub(super) fn has_models(&self) -> bool {
        !self.models.entries.is_empty()
    }

    fn plan(&self) -> Option<&Entry> {
        self.modes.entries.iter().find(|entry| entry.is_plan())
    }

    pub(super) fn can_plan(&self) -> bool {
        self.plan().is_some()
    }

    /// Is the agent in its mode for planning?
    pub(super) fn is_planning(&self) -> bool {
        let plan = self.plan().map(|entry| entry.id.as_str());
        plan.is_some() && plan == self.modes.current.as_deref()
    }

    /// Somebody wants this mode for acting. False if there is none of that name.
    pub(super) fn wish(&mut self, name: &str) -> bool {
        let found = self.modes.find(name).map(|entry| entry.id.clone());
        let known = found.is_some();
        if known {
            self.wish = found;
        }
        known
    }

    /// The mode to go into first, if the agent is not in it already. An agent that acts in a mode
    /// of its own choice is left in it.
    pub(super) fn mode_for(&self, mode: Mode) -> Option<String> {
        let wanted = match mode {
            Mode::Plan => self.plan()?.id.clone(),
            Mode::Act => self.acting()?,
        };
        Some(wanted).filter(|wanted| self.modes.current.as_ref() != Some(wanted))
    }

    fn acting(&self) -> Option<String> {
        let offered = |wanted: &&String| self.modes.find(wanted).is_some();
        let chosen = self.wish.as_ref().or(self.home.as_ref()).filter(offered);
        let others = || self.modes.entries.iter().filter(|entry| !entry.is_plan());
        let usual = || {
            let words = ["build", "default", "code"].into_iter();
            let mut found = words.filter_map(|word| others().find(|entry| entry.is_mode(word)));
            found.next().or_else(|| others().next())
        };
        chosen
            .cloned()
            .or_else(|| usual().map(|entry| entry.id.clone()))
    }

    /// The agent's own name for a model, if it has that one.
    pub(super) fn model(&self, name: &str) -> Option<String> {
        self.models.find(name).map(|entry| entry.id.clone())
    }

    pub(super) fn is_current_model(&self, id: &str) -> bool {
        self.models.current.as_deref() == Some(id)
    }

    /// All models, as clients know such lists.
    pub(super) fn list_models(&self, provider: &str) -> Value {
        let models: Vec<&str> = self
            .models
            .entries
            .iter()
            .map(|entry| entry.id.as_str())
            .collect();
        let mut all = json!({ "provider": provider, "models": models });
        if let Some(current) = &self.models.current {
            all["current"] = json!(current);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(ids: &[&str], current: &str) -> Choices {
        let all: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
        let mut choices = Choices::default();
        choices.learn(&json!({ "modes": { "availableModes": all, "currentModeId": current } }));
        choices
    }

    #[test]
    fn acting_goes_back_to_where_the_agent_was_and_else_to_the_usual_mode() {
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

        let mut choices = modes(&["default", "plan", "careful"], "careful");
        assert_eq!(choices.mode_for(Mode::Act), None);
        assert_eq!(choices.mode_for(Mode::Plan).as_deref(), Some("plan"));
        assert!(choices.moved("plan"));
        assert!(!choices.moved("plan"));
        assert_eq!(choices.mode_for(Mode::Act).as_deref(), Some("careful"));
    }

    #[test]
    fn a_mode_whose_id_is_an_address_is_known_by_its_last_word() {
        let choices = modes(
            &[
                "https://a.example/modes#agent",
                "https://a.example/modes#plan",
            ],
            "",
        );
        let plan = choices.mode_for(Mode::Plan);
        assert_eq!(plan.as_deref(), Some("https://a.example/modes#plan"));
    }

    #[test]
    fn models_in_groups_are_found_by_id_and_by_name() {
        let mut choices = Choices::default();
        choices.learn(&json!({ "configOptions": [{
            "id": "llm", "category": "model", "currentValue": "a/1",
            "options": [
                { "group": "a", "name": "A", "options": [{ "value": "a/1", "name": "One" }] },
                { "group": "b", "name": "B", "options": [{ "value": "b/2", "name": "Two" }, 7] },
            ],
        }] }));
        assert_eq!(choices.model("two").as_deref(), Some("b/2"));
        assert_eq!(choices.model("three"), None);
        let list = choices.list_models("me");
        assert_eq!(
            list,
            json!({ "provider": "me", "models": ["a/1", "b/2"], "current": "a/1" })
        );
    }
}
