//! Attachments: files that go with a prompt.

use serde_json::json;

use crate::actors::{Chromium, Journal, Visitor};
use crate::api_actors::Gateway;

#[tokio::test]
async fn a_file_goes_with_its_prompt_and_comes_back_byte_for_byte() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("notes of today.txt");
    let content = "ä line\r\n\tand <b>another</b>\n".repeat(500);
    std::fs::write(&file, &content).unwrap();

    mia.sees_workbench().await;
    mia.chooses("input#attach", &file).await;
    mia.sees_text(
        "[data-part=attachment][data-state=ready]",
        "notes of today.txt",
    )
    .await;
    mia.prompts("/echo have a look").await;
    let session = mia.sees_session().await;
    mia.sees_text("[data-entry=prompt]", "notes of today.txt")
        .await;
    mia.sees_answer("have a look").await;
    mia.sees_no("[data-part=attachment][data-state=ready]")
        .await;

    let reader = gateway.logged_in("mia").await;
    let journal = Journal::of(&session, &reader).await;
    let files = &journal.events[0]["payload"]["prompt"]["attachments"];
    assert_eq!(files[0]["name"], "notes of today.txt", "{files}");
    assert_eq!(files[0]["size"], json!(content.len()));
    let id = files[0]["attachmentId"].as_str().unwrap();
    let path = format!("/api/sessions/{session}/attachments/{id}");
    assert_eq!(reader.gets(&path).await.is(200).text, content);

    mia.reloads().await;
    mia.sees_text("[data-entry=prompt]", "notes of today.txt")
        .await;
}
