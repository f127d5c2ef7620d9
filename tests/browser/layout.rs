//! Layout: nothing covers, cuts or breaks anything, from a phone to a wide screen.

use serde_json::json;

use crate::actors::{Chromium, Screen, Visitor};
use crate::api_actors::Gateway;

const WIDTHS: [u32; 3] = [320, 390, 1280];

fn screen(width: u32) -> Screen {
    if width < 900 {
        Screen::phone(width)
    } else {
        Screen {
            width,
            ..Screen::WIDE
        }
    }
}

async fn is_sound_at_every_width(visitor: &Visitor, place: &str) {
    for width in WIDTHS {
        visitor.sets_screen(screen(width)).await;
        visitor.waits_until(
            "a page at rest",
            "return document.getAnimations().every((one) => one.playState !== 'running' || one.effect.getComputedTiming().iterations === Infinity)",
        )
        .await;
        visitor
            .sees_sound_layout(&format!("{place} at {width} px"))
            .await;
    }
}

#[tokio::test]
async fn no_control_is_covered_and_no_word_is_broken_while_an_agent_works_and_asks() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    is_sound_at_every_width(&mia, "a new session").await;
    mia.sets_screen(Screen::WIDE).await;
    let api = gateway.logged_in("mia").await;
    let session = mia.starts_session("/markdown").await;
    mia.sees_answer("See the guide").await;
    mia.prompts("/hang").await;
    mia.sees("[data-part=cancel]").await;
    mia.prompts("/tool").await;
    mia.sees("[data-part=queue]").await;
    is_sound_at_every_width(&mia, "a run with a queue").await;

    mia.cancels().await;
    mia.sees("[data-part=question][data-state=open]").await;
    is_sound_at_every_width(&mia, "an open question").await;
    // Scrolled up: the bar with the question, and the way back to the end.
    mia.runs_script::<()>("const box = document.querySelector('[data-part=transcript]'); box.scrollTop = 0; box.dispatchEvent(new Event('scroll'));")
        .await;
    mia.sees("[data-part=latest]").await;
    is_sound_at_every_width(&mia, "an open question out of view").await;
    for top in [60, 140, 220, 300, 380] {
        let scroll = format!(
            "const box = document.querySelector('[data-part=transcript]'); box.scrollTop = box.scrollHeight - box.clientHeight - {top}; box.dispatchEvent(new Event('scroll'));"
        );
        mia.runs_script::<()>(&scroll).await;
        mia.sees_sound_layout(&format!("a question {top} px above the end"))
            .await;
    }
    mia.sets_screen(Screen::WIDE).await;
    mia.clicks("[data-part=latest]").await;

    // A message at the edge, while the prompt box is in use.
    let rename = json!({ "title": "A name that is rather long for a session, and longer than a phone is wide" });
    let path = format!("/api/sessions/{session}");
    api.sends("PATCH", &path, Some(rename)).await.is(200);
    mia.runs_script::<()>("document.querySelector('[data-part=session-menu]').click()")
        .await;
    mia.clicks("[data-part=export-markdown]").await;
    mia.sees(".toast").await;
    is_sound_at_every_width(&mia, "a message").await;
}

#[tokio::test]
async fn no_control_is_covered_and_no_word_is_broken_for_a_member_who_may_only_suggest() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    gateway.adds_user("leo", "member");
    let chromium = Chromium::start();
    let base = format!("http://{}", gateway.address());
    let (mia, leo) = tokio::join!(
        Visitor::opens_browser(&chromium, &base),
        Visitor::opens_browser(&chromium, &base)
    );
    mia.logs_in("mia").await;
    leo.logs_in("leo").await;
    let session = mia.starts_session("/echo mine").await;
    mia.sees_answer("mine").await;
    let api = gateway.logged_in("mia").await;
    let path = format!("/api/sessions/{session}");
    let role = Some(json!({ "role": "editor" }));
    let grant = api.sends("PUT", &format!("{path}/grants/leo"), role).await;
    grant.is(200);
    let control = Some(json!({ "control": "exclusive" }));
    api.sends("PATCH", &path, control).await.is(200);
    mia.clicks("[data-part=take]").await;
    mia.sees("[data-part=release]").await;
    is_sound_at_every_width(&mia, "in control").await;
    leo.opens(&format!("/#/s/{session}")).await;
    leo.sees("[data-part=suggest]").await;
    is_sound_at_every_width(&leo, "may suggest").await;
}
