//! The pictures of the documents: `scripts/screenshots` makes them.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::actors::{Chromium, Screen, Visitor};
use crate::staff::{Browser, Settings};

/// A picture that everybody loads with the documents.
const MOST_BYTES: usize = 150 * 1024;
const DARK: Screen = Screen {
    is_dark: true,
    ..Screen::WIDE
};
const PHONE: Screen = Screen {
    density: 2,
    ..Screen::phone(360)
};

/// Says something in a new session, without a page.
async fn says(api: &Browser, agent: &str, title: Option<&str>, words: &str) -> String {
    let made = json!({ "agent": agent, "title": title });
    let made = api.posts("/api/sessions", made).await.is(201).json();
    let session = made["id"].as_str().unwrap().to_owned();
    let said = json!({ "type": "SUBMIT_PROMPT", "payload": { "text": words, "mode": "act" } });
    let path = format!("/api/sessions/{session}/commands");
    api.posts(&path, said).await.is(200);
    session
}

async fn takes(visitor: &Visitor, into: &Path, name: &str) {
    // Nothing moves, and no cursor blinks.
    let hidden = json!({ "hidden": true });
    visitor
        .tells_browser("Emulation.setScrollbarsHidden", hidden)
        .await;
    visitor.looks::<()>("document.activeElement?.blur()").await;
    visitor
        .awaits_that(
            "a page at rest",
            "return document.getAnimations().every((one) => one.playState !== 'running' || one.effect.getComputedTiming().iterations === Infinity)",
        )
        .await;
    let picture = visitor.photographs().await;
    println!("{name}: {} KB", picture.len() / 1024);
    assert!(
        picture.len() <= MOST_BYTES,
        "{name}: {} bytes",
        picture.len()
    );
    std::fs::write(into.join(name), picture).unwrap();
}

#[tokio::test]
#[ignore = "writes into docs/images"]
async fn the_pictures_of_the_documents_are_taken() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let images: PathBuf = here.join("docs/images");
    std::fs::create_dir_all(&images).unwrap();
    let agent = here.join("tests/browser/screenshots/agent.mjs");
    let command = json!(["node", agent]);
    let gateway = Settings::new()
        .configured(&format!(
            "[agents.coder]\nprotocol = \"acp\"\ncommand = {command}\n"
        ))
        .start()
        .await;
    gateway.has_user("mia", "member");
    gateway.has_user("leo", "member");
    let mia = gateway.browser("mia").await;
    for title in [
        "Why is the login slow on Mondays?",
        "Upgrade to the new router",
        "Notes for the release",
    ] {
        says(&mia, "demo", Some(title), "/echo Done.").await;
    }
    let waiting = says(&mia, "coder", None, "Which branches can go?").await;
    let session = says(
        &mia,
        "coder",
        None,
        "The calendar test failed tonight, on the 31st. Find out why, and repair it.",
    )
    .await;

    let chromium = Chromium::start();
    let base = format!("http://{}", gateway.address());
    let desk = Visitor::comes(&chromium, &base).await;
    desk.logs_in("mia").await;
    desk.opens_session(&session).await;
    desk.allows().await;
    desk.sees_answer("All 12 tests").await;
    desk.sees_rest().await;
    desk.reads("[data-part=waiting]", "Tidy up").await;
    takes(&desk, &images, "conversation.png").await;
    desk.looks_through(DARK).await;
    takes(&desk, &images, "conversation-dark.png").await;
    drop(desk);

    let phone = Visitor::with_screen(&chromium, &base, PHONE).await;
    phone.logs_in("mia").await;
    phone.opens(&format!("/#/s/{session}")).await;
    phone.sees_answer("All 12 tests").await;
    phone.sees_connection("live").await;
    takes(&phone, &images, "phone.png").await;
    phone.opens(&format!("/#/s/{waiting}")).await;
    phone.sees("[data-part=question][data-state=open]").await;
    phone.sees_connection("live").await;
    takes(&phone, &images, "phone-question.png").await;

    let office = Visitor::comes(&chromium, &base).await;
    office.logs_in("root").await;
    office.opens("/#/admin/overview").await;
    office.sees("[data-part=admin] h2").await;
    office.sees_no("[data-part=admin] [aria-busy=true]").await;
    takes(&office, &images, "administration.png").await;
}
