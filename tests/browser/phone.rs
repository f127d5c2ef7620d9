//! Phone: narrow screens, without sideways scrolling.

use crate::actors::{Chromium, Screen, Visitor};
use crate::api_actors::Gateway;

/// A conversation with wide content.
const WIDE: &str = "/echo A line that has to break: https://example.org/a/very/long/address/without/a/single/space/in/it/whatever/it/may/be/good/for\n\n```rust\nfn main() { println!(\"a line of code that is far too long for any phone, and for some desks as well\"); }\n```\n\n| first | second | third | fourth | fifth | sixth |\n|---|---|---|---|---|---|\n| something | somewhere | somebody | sometimes | somehow | somewhat |\n";

async fn fits(visitor: &Visitor, place: &str) {
    let (overhang, what) = visitor.finds_overhang().await;
    assert!(overhang <= 0, "{place}: {overhang} px too wide: {what:?}");
}

async fn everything_fits(width: u32) {
    let gateway = Gateway::start().await;
    gateway.adds_user("a-user-with-quite-a-long-name", "member");
    let chromium = Chromium::start();
    let base = format!("http://{}", gateway.address());
    let root = Visitor::with_screen(&chromium, &base, Screen::phone(width)).await;
    root.opens("/").await;
    root.sees("#login").await;
    fits(&root, "the login").await;
    root.fills_in_login("root").await;
    root.sees_workbench().await;
    fits(&root, "the page for a new session").await;

    root.prompts(WIDE).await;
    root.sees_session().await;
    root.sees_answer("somewhat").await;
    root.sees("[data-entry=answer] table").await;
    root.sees("[data-entry=answer] pre").await;
    fits(&root, "a conversation").await;
    root.prompts("/tool").await;
    root.sees("[data-part=question][data-state=open]").await;
    fits(&root, "a question").await;
    root.allows().await;
    root.sees_idle().await;
    fits(&root, "an answered question").await;

    assert!(!root.has("[data-part=sessions]").await);
    root.clicks("[data-part=drawer]").await;
    root.sees("[data-part=sessions] [data-session]").await;
    root.waits_until(
        "the drawer at rest",
        "return document.querySelector('.side').getAnimations().length === 0",
    )
    .await;
    fits(&root, "the list of sessions").await;
    root.clicks(".side-close").await;
    root.sees_no("[data-part=sessions]").await;

    for part in [
        "overview",
        "users",
        "connections",
        "sessions",
        "agents",
        "audit",
        "notice",
    ] {
        root.opens(&format!("/#/admin/{part}")).await;
        root.sees(&format!(
            "[data-part=admin] a[href='#/admin/{part}'][aria-current]"
        ))
        .await;
        if part == "users" {
            root.sees("[data-user=a-user-with-quite-a-long-name]").await;
        }
        fits(&root, part).await;
    }
    root.opens("/#/account").await;
    root.sees("main").await;
    fits(&root, "the account").await;
}

#[tokio::test]
async fn nothing_scrolls_sideways_at_320_pixels_and_the_drawer_opens_and_closes() {
    everything_fits(320).await;
}

#[tokio::test]
async fn nothing_scrolls_sideways_at_360_pixels_and_the_drawer_opens_and_closes() {
    everything_fits(360).await;
}
