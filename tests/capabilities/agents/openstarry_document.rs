//! The interface document of `OpenStarry`: each of its rows, with a core that was written from it.

use serde_json::{Value, json};

use crate::actors::{Gateway, OpenStarryPeer, Settings, WsClient};

/// A gateway with the core as its agent, and a member of a new session with it.
async fn joins(peer: &OpenStarryPeer) -> (Gateway, WsClient) {
    let settings = Settings::new().with_config_file(&peer.configuration());
    let gateway = settings.start().await;
    let browser = gateway.logged_in("root").await;
    let token = browser.token.unwrap();
    let member = WsClient::connects(gateway.address(), &token, "?agent=core").await;
    (gateway, member)
}

#[tokio::test]
async fn format_and_metadata_of_a_message_reach_clients() {
    let mut peer = OpenStarryPeer::listens();
    let (_gateway, mut mia) = joins(&peer).await;
    mia.prompts("hello").await;
    peer.accepts().await;
    let input = peer.receives("submitUserInput").await;
    assert_eq!(input, json!({ "text": "hello", "attachments": [] }));
    peer.is("thinking").await;
    let metadata = json!({
        "source_documents": [{ "title": "Guide", "page": 3 }, "notes.md"], "latency_ms": 1200,
    });
    let message = json!({ "content": "*as it is*", "format": "text", "metadata": metadata });
    peer.tells("onNewMessage", message).await;
    let chunk = mia.sees("TASK_OUTPUT_CHUNK").await["payload"].clone();
    assert_eq!(chunk["content"], "*as it is*");
    assert_eq!(chunk["isComplete"], true);
    let message = mia.sees("MESSAGE").await["payload"].clone();
    let expected = json!({
        "id": chunk["messageId"], "taskId": chunk["taskId"], "role": "assistant",
        "content": "*as it is*", "format": "text", "metadata": metadata,
    });
    assert_eq!(message, expected);
    peer.is("waiting_for_input").await;
    assert_eq!(mia.sees_run_end().await["status"], "completed");
    mia.sends("REQUEST_STATE", json!({})).await;
    let state = mia.sees("FULL_STATE").await["payload"].take();
    let history = state["conversationHistory"].as_array().unwrap();
    assert_eq!(history.len(), 2, "the answer is there once");
    assert_eq!(history[1]["format"], "text");
    assert_eq!(history[1]["metadata"], metadata);
    assert_eq!(history[0].get("format"), None, "of a person nobody says it");
}

#[tokio::test]
async fn a_message_without_format_and_metadata_is_an_answer_like_any_other() {
    let mut peer = OpenStarryPeer::listens();
    let (_gateway, mut mia) = joins(&peer).await;
    mia.prompts("hello").await;
    peer.accepts().await;
    peer.receives("submitUserInput").await;
    peer.is("thinking").await;
    peer.tells("onNewMessage", json!({ "content": "Hello!" }))
        .await;
    peer.is("waiting_for_input").await;
    assert_eq!(mia.sees_run_end().await["status"], "completed");
    assert_eq!(mia.text(), "Hello!");
    let is_message = |event: &Value| event["type"] == "MESSAGE";
    assert!(!mia.events.iter().any(is_message));
}

#[tokio::test]
async fn a_tool_call_of_the_document_is_asked_and_confirmed() {
    let mut peer = OpenStarryPeer::listens();
    let (_gateway, mut mia) = joins(&peer).await;
    for (option, approved, status) in [("allow", true, "running"), ("deny", false, "denied")] {
        mia.prompts("list it").await;
        if approved {
            peer.accepts().await;
        }
        peer.receives("submitUserInput").await;
        peer.is("thinking").await;
        let request = json!({
            "confirmationId": "uuid-1234", "toolName": "shell:execute",
            "args": { "command": "ls -l" },
            "security_warning": { "level": "CRITICAL", "message": "A shell command." },
        });
        peer.tells("onToolCallRequest", request).await;
        let question = mia.sees("QUESTION").await["payload"].clone();
        assert_eq!(question["level"], "CRITICAL");
        assert_eq!(question["message"], "A shell command.");
        assert_eq!(question["tool"]["name"], "shell:execute");
        assert_eq!(question["tool"]["args"], json!({ "command": "ls -l" }));
        let answer = json!({ "questionId": question["questionId"], "optionId": option });
        mia.sends("ANSWER", answer).await;
        let confirmation = peer.receives("provideConfirmation").await;
        let expected = json!({ "confirmationId": "uuid-1234", "approved": approved });
        assert_eq!(confirmation, expected);
        let is_status = |event: &Value| event["payload"]["status"] == status;
        while !mia.events.iter().any(is_status) {
            mia.receives().await.unwrap();
        }
        for state in ["executing_tool", "thinking", "waiting_for_input"] {
            peer.is(state).await;
        }
        assert_eq!(mia.sees_run_end().await["status"], "completed");
    }
}
