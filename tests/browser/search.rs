//! Search: from words to the place where they were said.

use serde_json::json;

use crate::actors::{Chromium, Visitor};
use crate::api_actors::{HttpClient, Settings};

async fn says(api: &HttpClient, session: &str, words: &str) {
    let prompt = json!({ "type": "SUBMIT_PROMPT", "payload": { "text": words, "mode": "act" } });
    let path = format!("/api/sessions/{session}/commands");
    api.posts(&path, prompt).await.is(200);
}

async fn is_idle(api: &HttpClient, session: &str) -> bool {
    let row = api.gets(&format!("/api/sessions/{session}")).await.is(200);
    row.json()["status"] == "idle" && row.json()["queuedPrompts"] == 0
}

/// Whether an entry with these words is in view, and what is marked.
fn shown(words: &str) -> String {
    format!(
        "const box = document.querySelector('[data-part=transcript]').getBoundingClientRect();
         const marked = [...(CSS.highlights.get('search-hit') ?? [])].map((range) => [range.toString(), range.getBoundingClientRect()]);
         const entry = [...document.querySelectorAll('[data-entry]')].find((one) => one.innerText.includes({}));
         if (!entry || marked.length === 0) return null;
         return [marked[0][0], marked.some(([, {{ top, bottom }}]) => top >= box.top && bottom <= box.bottom)];",
        json!(words)
    )
}

#[tokio::test]
async fn a_search_finds_parts_of_words_and_jumps_to_every_place_where_they_were_said() {
    let gateway = Settings::new()
        .with("LIMITS__MESSAGES_PER_MINUTE", "1000")
        .start()
        .await;
    gateway.adds_user("mia", "member");
    let api = gateway.logged_in("mia").await;
    let session = api.creates_session().await;
    says(&api, &session, "/echo the Befehlszeile was said early").await;
    for number in 1..=30 {
        says(&api, &session, &format!("/stream {}", 200 + number)).await;
    }
    says(&api, &session, "/echo and the Befehlszeile again, late").await;
    says(&api, &session, "/stream 300").await;
    let other = api.creates_session().await;
    says(&api, &other, "/echo nothing to see").await;
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.waits_for("all answers", async || {
        (is_idle(&api, &session).await && is_idle(&api, &other).await).then_some(())
    })
    .await;
    mia.logs_in("mia").await;

    mia.fills_in("#search", "zeile").await;
    mia.sees_text("[data-part=found]", "1 ").await;
    let found = format!("[data-part=found] [data-session={session}]");
    mia.sees(&found).await;
    mia.sees_text(&format!("{found} mark"), "zeile").await;
    // Prompt and answer, early and late.
    let hits = format!(
        "return document.querySelectorAll('{found} a.row-link, {found} [data-part=hit]').length"
    );
    assert_eq!(mia.runs_script::<u64>(&hits).await, 4);

    mia.clicks(&format!("{found} li:last-child [data-part=hit]"))
        .await;
    let (word, is_in_view): (String, bool) = mia
        .waits_for("the early place, marked", async || {
            let script = shown("was said early");
            let early: Option<(String, bool)> = mia.tries_script(&script).await.ok()?;
            early.filter(|(_, is_in_view)| *is_in_view)
        })
        .await;
    assert_eq!((word.as_str(), is_in_view), ("zeile", true));
    mia.sees("[data-part=latest]").await;
    mia.clicks(&format!("{found} a.row-link")).await;
    mia.waits_for("the late place, marked", async || {
        let script = shown("again, late");
        let late: Option<(String, bool)> = mia.tries_script(&script).await.ok()?;
        late.filter(|(_, is_in_view)| *is_in_view)
    })
    .await;
}
