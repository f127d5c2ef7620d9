//! Administration: disabling, notices and invites in the page.

use std::time::{Duration, Instant};

use crate::actors::{Chromium, Visitor};
use crate::api_actors::{Gateway, Settings};

#[tokio::test]
async fn a_disabled_user_sees_the_login_and_the_reason_within_two_seconds() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let base = format!("http://{}", gateway.address());
    let chromium = Chromium::start();
    let (root, mia, idle) = tokio::join!(
        Visitor::opens_browser(&chromium, &base),
        Visitor::opens_browser(&chromium, &base),
        Visitor::opens_browser(&chromium, &base)
    );
    root.logs_in("root").await;
    // One page with a session open, and one without.
    mia.logs_in("mia").await;
    mia.starts_session("/echo here I am").await;
    mia.sees_answer("here I am").await;
    idle.logs_in("mia").await;
    idle.sees("[data-part=new]").await;

    root.opens("/#/admin/users").await;
    root.clicks("[data-user=mia] [data-part=user-actions]")
        .await;
    root.clicks("[data-part=disable]").await;
    root.sees("[data-part=confirm]").await;
    let started = Instant::now();
    root.clicks("[data-part=confirm] [data-part=do]").await;
    let clicked = Instant::now();
    for (visitor, where_) in [(&mia, "in a session"), (&idle, "on the page for a new one")] {
        visitor.sees("#login").await;
        let waited = started.elapsed();
        println!(
            "{where_}: signed out {waited:?} after the click ({:?} of it for clicking)",
            clicked - started
        );
        assert!(waited < Duration::from_secs(2), "{where_}: {waited:?}");
        let why: String = visitor
            .runs_script("return document.querySelector('[role=status].why')?.innerText ?? ''")
            .await;
        assert!(why.len() > 10, "no reason: {why:?}");
        println!("{where_}: {why}");
    }
    root.sees("[data-user=mia][data-state=disabled]").await;
}

#[tokio::test]
async fn a_notice_reaches_every_open_page() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let base = format!("http://{}", gateway.address());
    let chromium = Chromium::start();
    let (root, mia, idle) = tokio::join!(
        Visitor::opens_browser(&chromium, &base),
        Visitor::opens_browser(&chromium, &base),
        Visitor::opens_browser(&chromium, &base)
    );
    root.logs_in("root").await;
    mia.logs_in("mia").await;
    mia.starts_session("/echo here I am").await;
    mia.sees_answer("here I am").await;
    idle.logs_in("mia").await;
    root.opens("/#/admin/notice").await;
    let words = "Down for <b>five</b> minutes at noon.";
    root.fills_in("#notice textarea", words).await;
    root.clicks("#notice button[type=submit]").await;
    root.clicks("[data-part=confirm] [data-part=do]").await;
    mia.sees_text("[data-part=notice]", words).await;
    idle.sees_text("[data-part=notice]", words).await;
}

#[tokio::test]
async fn an_invited_user_can_log_in_and_prompt() {
    let gateway = Gateway::start().await;
    let base = format!("http://{}", gateway.address());
    let chromium = Chromium::start();
    let (root, zoe) = tokio::join!(
        Visitor::opens_browser(&chromium, &base),
        Visitor::opens_browser(&chromium, &base)
    );
    root.logs_in("root").await;
    root.opens("/#/admin/users").await;
    let link = root.invites("zoe").await;
    zoe.opens(&link).await;
    zoe.sees_text("h1", "zoe").await;
    zoe.sees_text("[data-part=invitation]", "root invited you")
        .await;
    zoe.accepts(&link).await;
    zoe.starts_session("/echo thank you").await;
    zoe.sees_answer("thank you").await;
    // Used up.
    root.opens(&link).await;
    root.sees_text("h1", "not valid").await;
    assert!(!root.has("#invite").await);
}

#[tokio::test]
async fn a_user_and_an_administrator_see_what_is_used_of_each_quota() {
    let gateway = Settings::new()
        .with("LIMITS__USER_SESSIONS", "2")
        .with("LIMITS__USER_MESSAGES_PER_MINUTE", "50")
        .start()
        .await;
    gateway.adds_user("mia", "member");
    let base = format!("http://{}", gateway.address());
    let chromium = Chromium::start();
    let (root, mia) = tokio::join!(
        Visitor::opens_browser(&chromium, &base),
        Visitor::opens_browser(&chromium, &base)
    );
    mia.logs_in("mia").await;
    mia.starts_session("/echo here I am").await;
    mia.sees_answer("here I am").await;
    let quota = |name: &str| format!("[data-part=usage] [data-quota={name}]");
    mia.opens("/#/account").await;
    mia.sees_text(&quota("sessions"), "1 of 2").await;
    mia.sees_text(&quota("messagesPerMinute"), "1 of 50").await;
    mia.sees_text(&quota("attachmentBytes"), "0 B of 1 GiB")
        .await;
    mia.sees_text(&quota("journalBytes"), " of ").await;
    gateway.logged_in("mia").await.creates_session().await;
    mia.clicks("[data-part=usage] button").await;
    mia.sees_text(&quota("sessions"), "2 of 2").await;
    mia.sees_text(&quota("sessions"), "Used up").await;
    assert!(
        mia.has(&format!("{}[data-state=used-up]", quota("sessions")))
            .await
    );

    root.logs_in("root").await;
    root.opens("/#/admin/users").await;
    root.clicks("[data-user=mia] [data-part=user-actions]")
        .await;
    root.clicks("[data-part=see-usage]").await;
    root.sees_text("dialog h2", "Usage of mia").await;
    root.sees_text(&quota("sessions"), "2 of 2").await;
    root.sees_text(&quota("messagesPerMinute"), "of 50").await;
}
