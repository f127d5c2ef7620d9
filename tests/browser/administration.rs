//! What an administrator does in the page, and what others see of it.

use std::time::{Duration, Instant};

use crate::actors::{Chromium, Visitor};
use crate::staff::Gateway;

#[tokio::test]
async fn somebody_who_is_disabled_is_shown_the_login_and_why_within_two_seconds() {
    let gateway = Gateway::start().await;
    gateway.has_user("mia", "member");
    let base = format!("http://{}", gateway.address());
    let chromium = Chromium::start();
    let (root, mia, idle) = tokio::join!(
        Visitor::comes(&chromium, &base),
        Visitor::comes(&chromium, &base),
        Visitor::comes(&chromium, &base)
    );
    root.logs_in("root").await;
    // One page with a session open, and one without.
    mia.logs_in("mia").await;
    mia.begins("/echo here I am").await;
    mia.sees_answer("here I am").await;
    idle.logs_in("mia").await;
    idle.sees("[data-part=new]").await;

    root.opens("/#/admin/users").await;
    root.clicks("[data-user=mia] [data-part=user-actions]")
        .await;
    root.clicks("[data-part=disable]").await;
    root.sees("[data-part=confirm]").await;
    let told = Instant::now();
    root.clicks("[data-part=confirm] [data-part=do]").await;
    let told_until = Instant::now();
    for (visitor, where_) in [(&mia, "in a session"), (&idle, "on the page for a new one")] {
        visitor.sees("#login").await;
        let waited = told.elapsed();
        println!(
            "{where_}: signed out {waited:?} after the click ({:?} of it for clicking)",
            told_until - told
        );
        assert!(waited < Duration::from_secs(2), "{where_}: {waited:?}");
        let why: String = visitor
            .looks("return document.querySelector('[role=status].why')?.innerText ?? ''")
            .await;
        assert!(why.len() > 10, "no reason: {why:?}");
        println!("{where_}: {why}");
    }
    root.sees("[data-user=mia][data-state=disabled]").await;
}

#[tokio::test]
async fn a_notice_reaches_everybody_who_has_a_page_open() {
    let gateway = Gateway::start().await;
    gateway.has_user("mia", "member");
    let base = format!("http://{}", gateway.address());
    let chromium = Chromium::start();
    let (root, mia, idle) = tokio::join!(
        Visitor::comes(&chromium, &base),
        Visitor::comes(&chromium, &base),
        Visitor::comes(&chromium, &base)
    );
    root.logs_in("root").await;
    mia.logs_in("mia").await;
    mia.begins("/echo here I am").await;
    mia.sees_answer("here I am").await;
    idle.logs_in("mia").await;
    root.opens("/#/admin/notice").await;
    let words = "Down for <b>five</b> minutes at noon.";
    root.writes("#notice textarea", words).await;
    root.clicks("#notice button[type=submit]").await;
    root.clicks("[data-part=confirm] [data-part=do]").await;
    mia.reads("[data-part=notice]", words).await;
    idle.reads("[data-part=notice]", words).await;
}

#[tokio::test]
async fn an_administrator_invites_somebody_who_then_works_here() {
    let gateway = Gateway::start().await;
    let base = format!("http://{}", gateway.address());
    let chromium = Chromium::start();
    let (root, zoe) = tokio::join!(
        Visitor::comes(&chromium, &base),
        Visitor::comes(&chromium, &base)
    );
    root.logs_in("root").await;
    root.opens("/#/admin/users").await;
    let link = root.invites("zoe").await;
    zoe.accepts(&link).await;
    zoe.begins("/echo thank you").await;
    zoe.sees_answer("thank you").await;
}
