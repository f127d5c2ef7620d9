//! Screenshots: the images of the documentation, taken by `scripts/screenshots`.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::actors::{Chromium, Screen, Visitor};
use crate::api_actors::{HttpClient, Settings};

/// Size limit of an image in the documentation.
const MAX_BYTES: usize = 150 * 1024;
const DARK: Screen = Screen {
    is_dark: true,
    ..Screen::WIDE
};
const PHONE: Screen = Screen {
    density: 2,
    ..Screen::phone(360)
};

/// Sends a prompt in a new session, over the API.
async fn prompts_in_new_session(
    api: &HttpClient,
    agent: &str,
    title: Option<&str>,
    words: &str,
) -> String {
    let made = json!({ "agent": agent, "title": title });
    let made = api.posts("/api/sessions", made).await.is(201).json();
    let session = made["id"].as_str().unwrap().to_owned();
    let printed = json!({ "type": "SUBMIT_PROMPT", "payload": { "text": words, "mode": "act" } });
    let path = format!("/api/sessions/{session}/commands");
    api.posts(&path, printed).await.is(200);
    session
}

async fn saves_screenshot(visitor: &Visitor, into: &Path, name: &str) {
    // No animation, no blinking cursor.
    let hidden = json!({ "hidden": true });
    visitor
        .sends_devtools_command("Emulation.setScrollbarsHidden", hidden)
        .await;
    visitor
        .runs_script::<()>("document.activeElement?.blur()")
        .await;
    visitor
        .waits_until(
            "a page at rest",
            "return document.getAnimations().every((one) => one.playState !== 'running' || one.effect.getComputedTiming().iterations === Infinity)",
        )
        .await;
    let picture = visitor.takes_screenshot().await;
    println!("{name}: {} KB", picture.len() / 1024);
    assert!(
        picture.len() <= MAX_BYTES,
        "{name}: {} bytes",
        picture.len()
    );
    std::fs::write(into.join(name), picture).unwrap();
}

#[tokio::test]
#[ignore = "writes into docs/images"]
async fn the_screenshots_of_the_documentation_are_taken() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let images: PathBuf = here.join("docs/images");
    std::fs::create_dir_all(&images).unwrap();
    let agent = here.join("tests/browser/screenshots/agent.mjs");
    let command = json!(["node", agent]);
    let gateway = Settings::new()
        .with_config_file(&format!(
            "[agents.coder]\nprotocol = \"acp\"\ncommand = {command}\n"
        ))
        .start()
        .await;
    gateway.adds_user("mia", "member");
    gateway.adds_user("leo", "member");
    let mia = gateway.logged_in("mia").await;
    for title in [
        "Why is the login slow on Mondays?",
        "Upgrade to the new router",
        "Notes for the release",
    ] {
        prompts_in_new_session(&mia, "demo", Some(title), "/echo Done.").await;
    }
    let waiting = prompts_in_new_session(&mia, "coder", None, "Which branches can go?").await;
    let session = prompts_in_new_session(
        &mia,
        "coder",
        None,
        "The calendar test failed tonight, on the 31st. Find out why, and repair it.",
    )
    .await;

    let chromium = Chromium::start();
    let base = format!("http://{}", gateway.address());
    let desk = Visitor::opens_browser(&chromium, &base).await;
    desk.logs_in("mia").await;
    desk.opens_session(&session).await;
    desk.allows().await;
    desk.sees_answer("All 12 tests").await;
    desk.sees_idle().await;
    desk.sees_text("[data-part=waiting]", "Tidy up").await;
    saves_screenshot(&desk, &images, "conversation.png").await;
    desk.sets_screen(DARK).await;
    saves_screenshot(&desk, &images, "conversation-dark.png").await;
    drop(desk);

    let phone = Visitor::with_screen(&chromium, &base, PHONE).await;
    phone.logs_in("mia").await;
    phone.opens(&format!("/#/s/{session}")).await;
    phone.sees_answer("All 12 tests").await;
    phone.sees_connection("live").await;
    saves_screenshot(&phone, &images, "phone.png").await;
    phone.opens(&format!("/#/s/{waiting}")).await;
    phone.sees("[data-part=question][data-state=open]").await;
    phone.sees_connection("live").await;
    saves_screenshot(&phone, &images, "phone-question.png").await;

    let office = Visitor::opens_browser(&chromium, &base).await;
    office.logs_in("root").await;
    office.opens("/#/admin/overview").await;
    office.sees("[data-part=admin] h2").await;
    office.sees_no("[data-part=admin] [aria-busy=true]").await;
    saves_screenshot(&office, &images, "administration.png").await;
}
