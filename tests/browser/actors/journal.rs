//! Journal: the events of a session, read over the API.

use serde_json::Value;

use crate::api_actors::HttpClient;

/// All events of a session, in order.
pub(crate) struct Journal {
    pub(crate) events: Vec<Value>,
}

impl Journal {
    pub(crate) async fn of(session: &str, reader: &HttpClient) -> Self {
        Self::under("", session, reader).await
    }

    /// Reads it from a gateway with a base path.
    pub(crate) async fn under(base_path: &str, session: &str, reader: &HttpClient) -> Self {
        let mut events: Vec<Value> = Vec::new();
        loop {
            let after = events
                .last()
                .map_or(0, |last| last["offset"].as_u64().unwrap());
            let path =
                format!("{base_path}/api/sessions/{session}/events?after={after}&limit=1000");
            let page = reader.gets(&path).await.is(200).text;
            if page.is_empty() {
                return Self { events };
            }
            events.extend(
                page.lines()
                    .map(|line| serde_json::from_str::<Value>(line).unwrap()),
            );
        }
    }

    /// The agent's answers.
    pub(crate) fn answers(&self) -> Vec<String> {
        let mut answers: Vec<(String, String)> = Vec::new();
        for event in &self.events {
            let printed = &event["payload"];
            if event["type"] != "TASK_OUTPUT_CHUNK" || printed["channel"] != "text" {
                continue;
            }
            let id = printed["messageId"].as_str().unwrap();
            let content = printed["content"].as_str().unwrap();
            match answers.iter_mut().find(|(known, _)| known == id) {
                Some((_, text)) => text.push_str(content),
                None => answers.push((id.to_owned(), content.to_owned())),
            }
        }
        let texts = answers.into_iter().map(|(_, text)| text.trim().to_owned());
        texts.filter(|text| !text.is_empty()).collect()
    }

    /// The prompts.
    pub(crate) fn prompts(&self) -> Vec<String> {
        let asked = |event: &Value| {
            let prompt = &event["payload"]["prompt"]["text"];
            prompt.as_str().map(str::to_owned)
        };
        let starts = self
            .events
            .iter()
            .filter(|event| event["payload"]["status"] == "starting");
        starts.filter_map(asked).collect()
    }

    /// How each question ended.
    pub(crate) fn outcomes(&self) -> Vec<String> {
        let resolved = self
            .events
            .iter()
            .filter(|event| event["type"] == "QUESTION_RESOLVED");
        let outcomes = resolved.filter_map(|event| event["payload"]["outcome"].as_str());
        outcomes.map(str::to_owned).collect()
    }

    /// How each run ended.
    pub(crate) fn ends(&self) -> Vec<String> {
        let statuses = self
            .events
            .iter()
            .filter(|event| event["type"] == "TASK_STATUS_UPDATE");
        let statuses = statuses.filter_map(|event| event["payload"]["status"].as_str());
        let ends = statuses.filter(|status| ["completed", "cancelled", "error"].contains(status));
        ends.map(str::to_owned).collect()
    }
}
