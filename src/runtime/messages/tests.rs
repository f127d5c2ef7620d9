//! The stable JSON of every message. A sample that has to change breaks a runner of another version.

use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::domain::command::Mode;
use crate::domain::question::{Choice, ChoiceKind, QuestionKind, Severity, ToolUse};
use crate::runtime::prompt_content::{Content, File, Image, StoredFile};

mod commands;
mod events;

const RUN: &str = "run_018f0000000070008000000000000001";

fn run() -> RunId {
    RUN.parse().unwrap()
}

/// Each value must become exactly its sample, and the sample the value.
fn check<T>(message: &T, sample: &Value)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    assert_eq!(&serde_json::to_value(message).unwrap(), sample);
    assert_eq!(
        &serde_json::from_value::<T>(sample.clone()).unwrap(),
        message
    );
    let text = serde_json::to_string(message).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), message);
}

fn data(kind: &str, data: &Value) -> Value {
    json!({ "type": kind, "data": data })
}

fn prompt() -> PromptContent {
    PromptContent {
        images: vec![Image {
            media_type: "image/png".into(),
            base64: "AA==".into(),
        }],
        files: vec![
            File {
                name: "a.txt".into(),
                media_type: "text/plain".into(),
                content: Content::Text("hello".into()),
            },
            File {
                name: "b.bin".into(),
                media_type: "application/octet-stream".into(),
                content: Content::Base64("/w==".into()),
            },
        ],
        stored: vec![StoredFile {
            name: "c.pdf".into(),
            media_type: "application/pdf".into(),
            sha256: "00ff".into(),
            index: 2,
        }],
        context: Some(json!({ "file": "main.rs" })),
        meta: Some(json!({ "a": 1 })),
        ..PromptContent::new("look", Mode::Plan)
    }
}

fn prompt_sample() -> Value {
    json!({
        "text": "look", "mode": "plan",
        "images": [{ "media_type": "image/png", "base64": "AA==" }],
        "files": [
            { "name": "a.txt", "media_type": "text/plain", "content": { "text": "hello" } },
            {
                "name": "b.bin", "media_type": "application/octet-stream",
                "content": { "base64": "/w==" },
            },
        ],
        "stored": [
            { "name": "c.pdf", "media_type": "application/pdf", "sha256": "00ff", "index": 2 },
        ],
        "context": { "file": "main.rs" }, "meta": { "a": 1 },
    })
}

fn question() -> Question {
    let mut question = Question::new(
        QuestionKind::Permission,
        Severity::Warn,
        "Run it?",
        "`date`",
    );
    question.options = vec![Choice {
        id: "yes".into(),
        label: "Allow".into(),
        kind: Some(ChoiceKind::AllowOnce),
        detail: None,
    }];
    question.tool = Some(ToolUse {
        tool: "t1".into(),
        name: "shell".into(),
        args: json!({ "command": "date" }),
    });
    question
}

fn question_sample() -> Value {
    json!({
        "answer": "permission", "severity": "warn", "title": "Run it?", "message": "`date`",
        "options": [{ "id": "yes", "label": "Allow", "kind": "allow_once" }],
        "tool": { "tool": "t1", "name": "shell", "args": { "command": "date" } },
        "allow_remember": false, "allow_reason": false, "multiline": false, "secret": false,
        "multi": false,
    })
}
