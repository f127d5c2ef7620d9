//! Questions: what an open question does to the page around it.

use crate::actors::{ALT, Chromium, ENTER, Journal, Visitor};
use crate::api_actors::Gateway;

/// How far anything but the transcript and the lists is scrolled.
const SCROLLED: &str = "
    const fixed = [document.scrollingElement, document.body, ...document.querySelectorAll('.app-shell, .main-column, .session, .transcript-frame, .transcript-box')];
    return fixed.map((one) => Math.ceil(one.scrollTop)).reduce((sum, top) => sum + top, 0);";

#[tokio::test]
async fn going_to_a_question_or_a_heading_never_scrolls_the_shell_away() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    // Diffs and prompts contain text for screen readers only, anywhere in a long conversation.
    mia.starts_session("/edit").await;
    mia.sees_answer("I changed").await;
    for _ in 0..3 {
        mia.prompts("/edit").await;
        mia.sees_idle().await;
        mia.prompts("/echo # A heading\n\nAnd words below it.")
            .await;
        mia.sees_idle().await;
    }
    mia.prompts("/tool").await;
    mia.sees("[data-part=question][data-state=open]").await;

    // Away from the question, then back by the key and by the button.
    let up = "const box = document.querySelector('[data-part=transcript]'); box.scrollTop = 0; box.dispatchEvent(new Event('scroll'));";
    mia.runs_script::<()>(up).await;
    mia.sees("[data-part=show-question]").await;
    mia.presses_with(ALT, 'q').await;
    let is_focused = "return document.activeElement?.matches('[data-part=question]') ?? false";
    mia.waits_until("the question has the focus", is_focused)
        .await;
    assert_eq!(mia.runs_script::<u64>(SCROLLED).await, 0);
    mia.runs_script::<()>(up).await;
    mia.clicks("[data-part=show-question]").await;
    mia.sees_no("[data-part=show-question]").await;
    assert_eq!(mia.runs_script::<u64>(SCROLLED).await, 0);
    // As heading navigation of a screen reader does, for every heading and every hidden text.
    mia.runs_script::<()>(
        "for (const one of document.querySelectorAll('main :is(h1, h2, h3, h4), main .visually-hidden')) one.scrollIntoView();",
    )
    .await;
    assert_eq!(mia.runs_script::<u64>(SCROLLED).await, 0);
    mia.allows().await;
    mia.sees_idle().await;
}

#[tokio::test]
async fn what_is_typed_after_a_secret_question_goes_to_the_question_and_nowhere_else() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    let session = mia.starts_session("/echo ready").await;
    mia.sees_answer("ready").await;
    mia.types_prompt("/prompt secret").await;
    mia.presses(ENTER).await;
    mia.sees("[data-part=question][data-state=open]").await;
    let is_focused = "return document.activeElement?.matches('[data-part=question] input[type=password]') ?? false";
    mia.waits_until("the secret field has the focus", is_focused)
        .await;
    mia.presses("hunter2 is my password").await;
    mia.presses(ENTER).await;
    mia.sees_answer("Your secret has 22 characters.").await;
    mia.sees_idle().await;

    // A text question takes the focus too, and Enter answers it.
    mia.types_prompt("/prompt").await;
    mia.presses(ENTER).await;
    mia.waits_until(
        "the answer has the focus",
        "return document.activeElement?.matches('[data-part=question] input[type=text]') ?? false",
    )
    .await;
    mia.presses(" Lovelace").await;
    mia.presses(ENTER).await;
    mia.sees_answer("You said: Ada Lovelace").await;
    mia.sees_idle().await;

    // What was being typed when the question came stays where it is: Enter goes to the question, and only
    // the button queues it.
    mia.types_prompt("/prompt secret").await;
    mia.presses(ENTER).await;
    mia.sees("[data-part=question][data-state=open]").await;
    mia.types_prompt("half a thought").await;
    mia.presses(ENTER).await;
    mia.waits_until("the secret field has the focus", is_focused)
        .await;
    assert_eq!(mia.reads_draft().await, "half a thought");
    assert!(!mia.has("[data-part=queue]").await);
    mia.clicks("[data-part=send]").await;
    mia.sees_text("[data-part=queue]", "half a thought").await;
    mia.fills_in("[data-part=question] input[type=password]", "abc")
        .await;
    mia.presses(ENTER).await;
    mia.sees_answer("Your secret has 3 characters.").await;

    let api = gateway.logged_in("mia").await;
    let journal = Journal::of(&session, &api).await;
    let all = serde_json::to_string(&journal.events).unwrap();
    assert!(!all.contains("hunter2"), "{all}");
    let list = api.gets("/api/sessions").await.is(200).text;
    assert!(!list.contains("hunter2"), "{list}");
}
