//! Keyboard: everything works without a mouse.

use crate::actors::{Chromium, ENTER, Journal, TAB, Visitor};
use crate::api_actors::{Gateway, PASSWORD};

impl Visitor {
    /// Presses Tab until this element has the focus.
    async fn tabs_to(&self, selector: &str) {
        let is_there = format!("return document.activeElement?.matches('{selector}') ?? false");
        for _ in 0..80 {
            if self.runs_script::<bool>(&is_there).await {
                return;
            }
            self.presses(TAB).await;
        }
        panic!("Tab does not lead to {selector}");
    }

    /// Types a prompt into the focused field, key by key, and sends it.
    async fn enters(&self, words: &str) {
        self.presses(words).await;
        // The first Enter may accept a completion.
        self.waits_for("the prompt is sent", async || {
            self.presses(ENTER).await;
            let draft: Result<String, _> = self
                .tries_script("return document.querySelector('textarea#prompt').value")
                .await;
            draft.is_ok_and(|draft| draft.is_empty()).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn the_keyboard_alone_can_log_in_prompt_answer_and_cancel() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.opens("/").await;
    mia.sees("#login").await;
    mia.tabs_to("#username").await;
    mia.presses("mia").await;
    mia.tabs_to("#password").await;
    mia.presses(PASSWORD).await;
    mia.presses(ENTER).await;
    mia.sees_workbench().await;

    mia.tabs_to("textarea#prompt").await;
    mia.enters("/tool").await;
    let session = mia.sees_session().await;
    mia.sees("[data-part=question][data-state=open]").await;
    mia.tabs_to("[data-answer=allow_once]").await;
    mia.presses(ENTER).await;
    mia.sees("[data-part=question][data-state=resolved]").await;
    mia.sees_idle().await;

    mia.tabs_to("textarea#prompt").await;
    mia.enters("/stream 100000 5").await;
    mia.sees_answer_begin("10").await;
    mia.tabs_to("[data-part=cancel]").await;
    mia.presses(ENTER).await;
    mia.sees("[data-entry=end]").await;
    mia.sees_idle().await;
    let journal = Journal::of(&session, &gateway.logged_in("mia").await).await;
    assert_eq!(journal.outcomes(), ["allowed"]);
    assert_eq!(journal.ends(), ["completed", "cancelled"]);
}
