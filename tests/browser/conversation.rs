//! Conversation: permissions, cancelling and drafts in the page.

use crate::actors::{Chromium, Journal, Visitor};
use crate::api_actors::Gateway;

/// Answers without code marks, as shown.
fn unmarked(journal: &Journal) -> Vec<String> {
    let answers = journal.answers().into_iter();
    answers.map(|answer| answer.replace('`', "")).collect()
}

#[tokio::test]
async fn a_permission_given_in_the_page_shows_who_gave_it() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    let session = mia.starts_session("/tool").await;
    mia.sees(&format!("[data-part=waiting] [data-session={session}]"))
        .await;
    // What an answer covers stands on the card.
    mia.sees_text("[data-part=covers]", "Always allow: Holds in this session")
        .await;
    mia.allows().await;
    mia.sees_text("[data-entry=question]", "Allowed by you")
        .await;
    mia.sees_idle().await;
    mia.sees_no(&format!("[data-part=waiting] [data-session={session}]"))
        .await;

    let journal = Journal::of(&session, &gateway.logged_in("mia").await).await;
    assert_eq!(journal.outcomes(), ["allowed"]);
    assert_eq!(journal.ends(), ["completed"]);
    mia.sees_text("[data-entry=tool]", "").await;
    assert_eq!(mia.reads_answers().await, unmarked(&journal));
}

#[tokio::test]
async fn a_permission_can_be_denied_in_the_page() {
    let gateway = Gateway::start().await;
    gateway.adds_user("leo", "member");
    let chromium = Chromium::start();
    let leo = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    leo.logs_in("leo").await;
    let session = leo.starts_session("/tool").await;
    leo.denies().await;
    leo.sees_text("[data-entry=question]", "Denied by you")
        .await;
    leo.sees_idle().await;
    let journal = Journal::of(&session, &gateway.logged_in("leo").await).await;
    assert_eq!(journal.outcomes(), ["denied"]);
    assert_eq!(leo.reads_answers().await, unmarked(&journal));
}

#[tokio::test]
async fn after_a_cancel_during_streaming_the_page_is_usable_at_once() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    let session = mia.starts_session("/stream 100000 5").await;
    mia.sees_answer_begin("10").await;
    mia.cancels().await;
    mia.sees("[data-entry=end]").await;
    mia.sees_idle().await;
    mia.prompts("/echo and on we go").await;
    mia.sees_answer("and on we go").await;

    let journal = Journal::of(&session, &gateway.logged_in("mia").await).await;
    assert_eq!(journal.ends(), ["cancelled", "completed"]);
    assert_eq!(mia.reads_answers().await, journal.answers());
}

#[tokio::test]
async fn a_draft_survives_a_reload() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    let draft = "half of a thought,\nand its second line";
    mia.types_prompt(draft).await;
    mia.reloads().await;
    mia.sees_workbench().await;
    assert_eq!(mia.reads_draft().await, draft);

    // A session and the new-session page each keep their own draft.
    mia.clicks("[data-part=send]").await;
    mia.sees_session().await;
    mia.sees_answer("demo agent").await;
    assert_eq!(mia.reads_draft().await, "");
    mia.types_prompt("something else").await;
    mia.reloads().await;
    mia.sees_workbench().await;
    assert_eq!(mia.reads_draft().await, "something else");
    mia.clicks("[data-part=new-session]").await;
    mia.sees("[data-part=new]").await;
    assert_eq!(mia.reads_draft().await, "");
}
