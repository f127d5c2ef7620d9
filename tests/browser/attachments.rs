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

/// Drops a file on an element, as the browser reports it; returns whether the page took it from the browser.
fn drops_on(selector: &str) -> String {
    format!(
        "const data = new DataTransfer();
         data.items.add(new File(['some words'], 'dropped.txt', {{ type: 'text/plain' }}));
         const at = document.querySelector('{selector}');
         const isTaken = (kind) => !at.dispatchEvent(new DragEvent(kind, {{ dataTransfer: data, bubbles: true, cancelable: true }}));
         return isTaken('dragover') && isTaken('drop');"
    )
}

#[tokio::test]
async fn a_file_dropped_anywhere_is_attached_and_never_opened_in_place_of_the_page() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    mia.starts_session("/echo ready").await;
    mia.sees_answer("ready").await;
    mia.sees_idle().await;
    for (number, place) in ["[data-part=transcript]", "header.bar", ".side", "#prompt"]
        .iter()
        .enumerate()
    {
        assert!(mia.runs_script::<bool>(&drops_on(place)).await, "{place}");
        let attached = format!(
            "return document.querySelectorAll('[data-part=attachment][data-state=ready]').length === {}",
            number + 1
        );
        mia.waits_until(place, &attached).await;
    }
    // Nothing to attach to: the browser must not open it either.
    mia.opens("/#/account").await;
    mia.sees("[data-part=account]").await;
    assert!(mia.runs_script::<bool>(&drops_on("main")).await);
    assert!(mia.has("[data-part=account]").await);
}
