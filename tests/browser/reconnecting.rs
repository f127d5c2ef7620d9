//! Lines that break, and pages that are loaded anew, in the middle of an answer.

use crate::actors::{Chromium, Journal, Visitor};
use crate::staff::Gateway;

#[tokio::test]
async fn a_page_that_is_reloaded_in_mid_stream_shows_what_the_journal_has() {
    let gateway = Gateway::start().await;
    gateway.has_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::comes(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    let session = mia.begins("/stream 700 3").await;
    mia.sees_answer_begin("50").await;
    mia.reloads().await;
    mia.sees_answer_begin("200").await;
    mia.reloads().await;
    mia.sees_answer("700").await;
    mia.sees_rest().await;

    let journal = Journal::of(&session, &gateway.browser("mia").await).await;
    assert_eq!(journal.ends(), ["completed"]);
    // The beginning comes last: the newest events are loaded first.
    mia.sees("[data-entry=prompt]").await;
    assert_eq!(mia.reads_answers().await, journal.answers());
    mia.reloads().await;
    mia.sees_answer("700").await;
    mia.sees("[data-entry=prompt]").await;
    mia.sees_rest().await;
    assert_eq!(mia.reads_answers().await, journal.answers());
}

#[tokio::test]
async fn a_page_recovers_by_itself_when_the_gateway_was_killed_and_sends_once_what_was_typed_meanwhile()
 {
    let mut gateway = Gateway::start().await;
    gateway.has_user("mia", "member");
    let address = gateway.address().to_string();
    let chromium = Chromium::start();
    let mia = Visitor::comes(&chromium, &format!("http://{address}")).await;
    mia.logs_in("mia").await;
    let session = mia.begins("/stream 100000 5").await;
    mia.sees_answer_begin("30").await;
    // Gone after a reload.
    mia.looks::<()>("window.here = true").await;

    gateway.kill();
    mia.sees_connection("reconnecting").await;
    let words = "/echo typed while nobody was there";
    mia.prompts(words).await;
    gateway.starts_at(&address);
    mia.awaits_that(
        "the line is back",
        "return ['live', 'resumed'].includes(document.querySelector('[data-part=connection]').dataset.state)",
    )
    .await;
    mia.sees("[data-entry=end]").await;

    // Sent by itself, or given back to be sent.
    let reader = gateway.browser("mia").await;
    let is_sent = async || {
        let journal = Journal::of(&session, &reader).await;
        journal.prompts().contains(&words.to_owned())
    };
    mia.awaits("what was typed", async || {
        (is_sent().await || mia.reads_draft().await == words).then_some(())
    })
    .await;
    if !is_sent().await {
        mia.clicks("[data-part=send]").await;
    }
    mia.sees_answer("typed while nobody was there").await;
    mia.sees_rest().await;

    let journal = Journal::of(&session, &reader).await;
    assert_eq!(journal.prompts(), ["/stream 100000 5", words]);
    assert_eq!(journal.ends(), ["error", "completed"]);
    assert_eq!(mia.reads_answers().await, journal.answers());
    assert_eq!(mia.reads_draft().await, "");
    assert!(mia.looks::<bool>("return window.here === true").await);
}
