//! Asking, being asked, and cutting short.

use crate::actors::{Chromium, Journal, Visitor};
use crate::staff::Gateway;

/// Answers without the marks around code, as they are shown.
fn unmarked(journal: &Journal) -> Vec<String> {
    let answers = journal.answers().into_iter();
    answers.map(|answer| answer.replace('`', "")).collect()
}

#[tokio::test]
async fn a_permission_is_given_in_the_page_and_the_card_says_by_whom() {
    let gateway = Gateway::start().await;
    gateway.has_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::comes(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    let session = mia.begins("/tool").await;
    mia.sees(&format!("[data-part=waiting] [data-session={session}]"))
        .await;
    mia.allows().await;
    mia.reads("[data-entry=question]", "Allowed by you").await;
    mia.sees_rest().await;
    mia.sees_no(&format!("[data-part=waiting] [data-session={session}]"))
        .await;

    let journal = Journal::of(&session, &gateway.browser("mia").await).await;
    assert_eq!(journal.outcomes(), ["allowed"]);
    assert_eq!(journal.ends(), ["completed"]);
    mia.reads("[data-entry=tool]", "").await;
    assert_eq!(mia.reads_answers().await, unmarked(&journal));
}

#[tokio::test]
async fn a_permission_is_denied_in_the_page() {
    let gateway = Gateway::start().await;
    gateway.has_user("leo", "member");
    let chromium = Chromium::start();
    let leo = Visitor::comes(&chromium, &format!("http://{}", gateway.address())).await;
    leo.logs_in("leo").await;
    let session = leo.begins("/tool").await;
    leo.denies().await;
    leo.reads("[data-entry=question]", "Denied by you").await;
    leo.sees_rest().await;
    let journal = Journal::of(&session, &gateway.browser("leo").await).await;
    assert_eq!(journal.outcomes(), ["denied"]);
    assert_eq!(leo.reads_answers().await, unmarked(&journal));
}

#[tokio::test]
async fn a_run_that_is_cancelled_in_mid_stream_leaves_the_page_usable_at_once() {
    let gateway = Gateway::start().await;
    gateway.has_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::comes(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    let session = mia.begins("/stream 100000 5").await;
    mia.sees_answer_begin("10").await;
    mia.cancels().await;
    mia.sees("[data-entry=end]").await;
    mia.sees_rest().await;
    mia.prompts("/echo and on we go").await;
    mia.sees_answer("and on we go").await;

    let journal = Journal::of(&session, &gateway.browser("mia").await).await;
    assert_eq!(journal.ends(), ["cancelled", "completed"]);
    assert_eq!(mia.reads_answers().await, journal.answers());
}

#[tokio::test]
async fn a_draft_survives_a_reload() {
    let gateway = Gateway::start().await;
    gateway.has_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::comes(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    let draft = "half of a thought,\nand its second line";
    mia.types_prompt(draft).await;
    mia.reloads().await;
    mia.sees_workbench().await;
    assert_eq!(mia.reads_draft().await, draft);

    // Of one session and of the page for a new one, each its own.
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
