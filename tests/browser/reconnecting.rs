//! Reconnecting: reloads and a killed gateway during an answer.

use crate::actors::{Chromium, Journal, Visitor};
use crate::api_actors::Gateway;

#[tokio::test]
async fn a_page_reloaded_during_streaming_shows_the_whole_journal() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    let session = mia.starts_session("/stream 700 3").await;
    mia.sees_answer_begin("50").await;
    mia.reloads().await;
    mia.sees_answer_begin("200").await;
    mia.reloads().await;
    mia.sees_answer("700").await;
    mia.sees_idle().await;

    let journal = Journal::of(&session, &gateway.logged_in("mia").await).await;
    assert_eq!(journal.ends(), ["completed"]);
    // The newest events load first, the beginning last.
    mia.sees("[data-entry=prompt]").await;
    assert_eq!(mia.reads_answers().await, journal.answers());
    mia.reloads().await;
    mia.sees_answer("700").await;
    mia.sees("[data-entry=prompt]").await;
    mia.sees_idle().await;
    assert_eq!(mia.reads_answers().await, journal.answers());
}

#[tokio::test]
async fn after_a_gateway_crash_the_page_reconnects_and_sends_a_pending_prompt_once() {
    let mut gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let address = gateway.address().to_string();
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{address}")).await;
    mia.logs_in("mia").await;
    let session = mia.starts_session("/stream 100000 5").await;
    mia.sees_answer_begin("30").await;
    // Gone after a reload.
    mia.runs_script::<()>("window.here = true").await;

    gateway.kill();
    mia.sees_connection("reconnecting").await;
    let words = "/echo typed while nobody was there";
    mia.prompts(words).await;
    gateway.starts_at(&address);
    mia.waits_until(
        "the line is back",
        "return ['live', 'resumed'].includes(document.querySelector('[data-part=connection]').dataset.state)",
    )
    .await;
    mia.sees("[data-entry=end]").await;

    // Sent automatically, or kept as a draft.
    let reader = gateway.logged_in("mia").await;
    let is_sent = async || {
        let journal = Journal::of(&session, &reader).await;
        journal.prompts().contains(&words.to_owned())
    };
    mia.waits_for("what was typed", async || {
        (is_sent().await || mia.reads_draft().await == words).then_some(())
    })
    .await;
    if !is_sent().await {
        mia.clicks("[data-part=send]").await;
    }
    mia.sees_answer("typed while nobody was there").await;
    mia.sees_idle().await;

    let journal = Journal::of(&session, &reader).await;
    assert_eq!(journal.prompts(), ["/stream 100000 5", words]);
    assert_eq!(journal.ends(), ["error", "completed"]);
    assert_eq!(mia.reads_answers().await, journal.answers());
    assert_eq!(mia.reads_draft().await, "");
    assert!(mia.runs_script::<bool>("return window.here === true").await);
}
