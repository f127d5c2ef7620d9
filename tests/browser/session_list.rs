//! Session list: what sessions are called, and what they show about themselves.

use serde_json::json;

use crate::actors::{Chromium, ENTER, Visitor};
use crate::api_actors::Gateway;

#[tokio::test]
async fn a_session_keeps_the_name_of_its_first_prompt_and_shows_what_it_is() {
    let gateway = Gateway::start().await;
    for name in ["mia", "leo"] {
        gateway.adds_user(name, "member");
    }
    let chromium = Chromium::start();
    let base = format!("http://{}", gateway.address());
    let (mia, leo) = tokio::join!(
        Visitor::opens_browser(&chromium, &base),
        Visitor::opens_browser(&chromium, &base)
    );
    mia.logs_in("mia").await;
    let session = mia.starts_session("/echo the first prompt").await;
    mia.sees_answer("the first prompt").await;
    mia.prompts("/echo a second one").await;
    mia.sees_answer("a second one").await;
    let row = format!("[data-part=sessions] [data-session={session}]");
    let title = |words: &'static str| {
        let row = row.clone();
        let mia = &mia;
        async move {
            mia.sees_text(&format!("{row} .row-title"), words).await;
            mia.sees_text("[data-part=title]", words).await;
        }
    };
    title("/echo the first prompt").await;
    // The agent's title wins, and renaming wins over both.
    mia.prompts("/title By the agent").await;
    title("By the agent").await;
    mia.clicks("[data-part=title]").await;
    mia.sees(".head .rename input").await;
    mia.pastes("By mia").await;
    mia.presses(ENTER).await;
    title("By mia").await;
    mia.prompts("/title Once more by the agent").await;
    mia.sees_answer("The title is set.").await;
    mia.sees_idle().await;
    mia.prompts("/tool").await;
    mia.sees("[data-part=question][data-state=open]").await;
    title("By mia").await;
    mia.reloads().await;
    title("By mia").await;

    // A viewer sees whose it is, is asked nothing, and is not told to answer.
    let api = gateway.logged_in("mia").await;
    let path = format!("/api/sessions/{session}");
    let viewer = Some(json!({ "role": "viewer" }));
    let grant = format!("{path}/grants/leo");
    api.sends("PUT", &grant, viewer).await.is(200);
    mia.sees_text(&format!("{row} [data-tag=shared]"), "1")
        .await;
    mia.sees_text(".head [data-tag=shared]", "1").await;
    leo.logs_in("leo").await;
    leo.opens(&format!("/#/s/{session}")).await;
    leo.sees("[data-part=question]").await;
    leo.sees_text(".head [data-tag=shared-by]", "mia").await;
    leo.sees_text(".head [data-tag=access]", "View only").await;
    leo.sees_text("[data-part=working]", "someone who can edit")
        .await;
    let page = leo.reads_page().await.to_lowercase();
    assert!(!page.contains("waiting for you ("), "{page}");
    assert!(!page.contains("waits for you"), "{page}");

    // A branch and an archived session say what they are.
    mia.allows().await;
    mia.sees_idle().await;
    mia.runs_script::<()>(
        "document.querySelector('[data-entry=answer] [data-part=branch]').click()",
    )
    .await;
    mia.sees_text(".head [data-tag=branch]", "Branch").await;
    mia.clicks(".head-side [data-part=session-menu]").await;
    mia.clicks("[data-part=archive]").await;
    mia.sees_text(".head [data-tag=archived]", "Archived").await;

    // Exports are named after the session.
    mia.opens(&format!("/#/s/{session}")).await;
    mia.sees_text("[data-part=title]", "By mia").await;
    mia.runs_script::<()>("window.saved = []; HTMLAnchorElement.prototype.click = function () { window.saved.push(this.download); };")
        .await;
    mia.clicks(".head-side [data-part=session-menu]").await;
    mia.clicks("[data-part=export-markdown]").await;
    mia.waits_until(
        "a file named after the session",
        "return window.saved[0] === 'By-mia.md'",
    )
    .await;
}
