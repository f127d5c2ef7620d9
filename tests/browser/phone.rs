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

/// The header of a session: its height, and the width of its title.
const HEADER: &str = "
    const bar = document.querySelector('header.bar').getBoundingClientRect();
    const title = document.querySelector('[data-part=title]').getBoundingClientRect();
    const usage = document.querySelector('[data-part=usage]');
    return [bar.height, title.width, title.height, usage?.checkVisibility() ? 1 : 0];";

async fn has_flat_header(visitor: &Visitor, place: &str) {
    let [height, title_width, title_height, _]: [f64; 4] = visitor.runs_script(HEADER).await;
    assert!(height <= 72.0, "{place}: the header is {height} px high");
    assert!(
        title_width >= 80.0,
        "{place}: the title has {title_width} px"
    );
    assert!(title_height <= 36.0, "{place}: the title is broken");
    visitor.sees_sound_layout(place).await;
}

#[tokio::test]
async fn the_header_stays_flat_on_a_phone_with_usage_shown_and_while_reconnecting() {
    let mut gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let address = gateway.address().to_string();
    let chromium = Chromium::start();
    let mia =
        Visitor::with_screen(&chromium, &format!("http://{address}"), Screen::phone(390)).await;
    mia.logs_in("mia").await;
    mia.opens("/#/").await;
    mia.prompts("/usage").await;
    mia.sees_session().await;
    mia.sees_answer("This took").await;
    mia.sees("[data-part=usage]").await;
    mia.sees_connection("live").await;
    let widths = [320, 360, 390, 412, 768];
    for width in widths {
        mia.sets_screen(Screen::phone(width)).await;
        has_flat_header(&mia, &format!("{width} px, with usage")).await;
    }
    gateway.kill();
    mia.sees_connection("reconnecting").await;
    mia.sees("[data-part=hurry]").await;
    for width in widths {
        mia.sets_screen(Screen::phone(width)).await;
        has_flat_header(&mia, &format!("{width} px, reconnecting")).await;
    }
    gateway.starts_at(&address);
    mia.clicks("[data-part=hurry]").await;
    mia.waits_until(
        "the connection is back",
        "return ['live', 'resumed'].includes(document.querySelector('[data-part=connection]').dataset.state)",
    )
    .await;
}
