//! Access: what happens to an open page when access ends, and what viewers are told.

use serde_json::json;

use crate::actors::{Chromium, Visitor};
use crate::api_actors::{Gateway, Settings};

/// Text of the page, values of its fields included.
const EVERYTHING: &str = "
    const values = [...document.querySelectorAll('input, textarea')].map((one) => one.value);
    return [document.title, document.body.innerText, ...values].join('\\n');";

#[tokio::test]
async fn a_conversation_disappears_at_once_when_access_ends_and_the_draft_stays() {
    let gateway = Gateway::start().await;
    for name in ["mia", "leo"] {
        gateway.adds_user(name, "member");
    }
    let chromium = Chromium::start();
    let leo = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    leo.logs_in("leo").await;
    let mia = gateway.logged_in("mia").await;
    for (end, word) in [("grant", "unshared"), ("session", "deleted")] {
        let session = mia.creates_session().await;
        let path = format!("/api/sessions/{session}");
        let grant = format!("{path}/grants/leo");
        mia.sends("PUT", &grant, Some(json!({ "role": "editor" })))
            .await
            .is(200);
        let title = Some(json!({ "title": format!("title {word}") }));
        mia.sends("PATCH", &path, title).await.is(200);
        leo.opens(&format!("/#/s/{session}")).await;
        leo.sees_connection("live").await;
        leo.prompts(&format!("/echo answer {word}")).await;
        leo.sees_answer(&format!("answer {word}")).await;
        leo.types_prompt(&format!("draft {word}")).await;

        let ended = if end == "grant" { &grant } else { &path };
        mia.sends("DELETE", ended, None).await.is(204);
        leo.sees("[data-part=ended]").await;
        leo.sees("[data-part=kept]").await;
        let page: String = leo.runs_script(EVERYTHING).await;
        assert!(!page.contains(&format!("answer {word}")), "{page}");
        assert!(!page.contains(&format!("title {word}")), "{page}");
        assert!(!leo.has("textarea#prompt").await, "{page}");
        assert!(page.contains(&format!("draft {word}")), "{page}");
        leo.clicks("[data-part=kept] button").await;
        leo.sees("[data-part=new]").await;
        let draft = leo.reads_draft().await;
        assert!(draft.ends_with(&format!("draft {word}")), "{draft}");
        leo.sees_no(&format!("[data-session={session}]")).await;
    }
}

#[tokio::test]
async fn a_refused_login_counts_down_to_the_next_attempt() {
    const SECONDS: &str = "
        const words = document.querySelector('#login button[type=submit]').innerText;
        return Number(/Try again in (\\d+) s/.exec(words)?.[1] ?? 0);";
    let gateway = Settings::new()
        .with("LIMITS__LOGINS_PER_MINUTE", "1")
        .start()
        .await;
    let chromium = Chromium::start();
    let base = format!("http://{}", gateway.address());
    let visitor = Visitor::opens_browser(&chromium, &base).await;
    visitor.opens("/").await;
    visitor.fills_in("#login #username", "root").await;
    visitor.fills_in("#login #password", "wrong password").await;
    visitor.clicks("#login button[type=submit]").await;
    visitor.sees("#login #password[aria-invalid=true]").await;
    visitor.fills_in("#login #password", "still wrong").await;
    visitor.clicks("#login button[type=submit]").await;
    visitor
        .sees_text("#login button[type=submit]", "Try again in")
        .await;
    let first: u64 = visitor.runs_script(SECONDS).await;
    assert!((1..=60).contains(&first), "{first}");
    let why: String = visitor
        .runs_script("return document.querySelector('#login [role=alert]').innerText")
        .await;
    assert!(why.len() > 10, "no reason: {why:?}");
    let smaller = SECONDS.replace("return Number", "const left = Number");
    let smaller = format!("{smaller} return left > 0 && left < {first};");
    visitor.waits_until("fewer seconds", &smaller).await;
    assert!(
        visitor
            .has("#login button[type=submit][aria-disabled=true]")
            .await
    );
}
