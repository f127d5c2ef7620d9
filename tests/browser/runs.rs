//! Runs: how a run is shown while it goes on, when it ends and when it is lost.

use crate::actors::{Chromium, Journal, Visitor};
use crate::api_actors::{Gateway, Settings};

const CONTROL: char = '\u{e009}';
const ENTER_KEY: char = '\u{e007}';

#[tokio::test]
async fn a_finished_plan_stays_in_the_conversation_live_and_after_a_reload() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    mia.starts_session("/plan").await;
    mia.sees("[data-part=plan]").await;
    mia.sees_answer("The plan is carried out.").await;
    mia.sees_idle().await;
    mia.prompts("/echo afterwards").await;
    mia.sees_answer("afterwards").await;
    mia.sees_idle().await;
    let shown = "
        const plans = [...document.querySelectorAll('details.plan')];
        return plans.map((one) => [one.closest('[data-entry]')?.dataset.entry ?? 'pinned', one.querySelector('summary').innerText.replace(/\\s+/g, ' ').trim()]);";
    let live: Vec<[String; 2]> = mia.runs_script(shown).await;
    assert_eq!(live.len(), 1, "{live:?}");
    assert_eq!(live[0][0], "plan", "in the conversation: {live:?}");
    assert!(live[0][1].contains("3 of 3"), "{live:?}");
    let order: Vec<String> = mia
        .runs_script(
            "return [...document.querySelectorAll('[data-entry]')].map((one) => one.dataset.entry)",
        )
        .await;
    assert_eq!(order, ["prompt", "plan", "answer", "prompt", "answer"]);
    mia.reloads().await;
    mia.sees_answer("afterwards").await;
    mia.sees_connection("live").await;
    assert_eq!(mia.runs_script::<Vec<[String; 2]>>(shown).await, live);
}

#[tokio::test]
async fn steering_reaches_the_run_that_is_under_way() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    let session = mia.starts_session("/stream 100000 5").await;
    mia.sees_answer_begin("10").await;
    mia.types_prompt("towards the sea").await;
    mia.presses_with(CONTROL, ENTER_KEY).await;
    mia.sees_answer_begin("You steered me: towards the sea")
        .await;
    assert!(!mia.has("[data-part=queue]").await);
    mia.cancels().await;
    mia.sees_idle().await;
    let journal = Journal::of(&session, &gateway.logged_in("mia").await).await;
    assert_eq!(journal.ends(), ["cancelled"], "one run");
}

#[tokio::test]
async fn a_lost_run_says_what_was_lost_and_retry_sends_its_prompt_again() {
    let missing =
        "[agents.missing]\nprotocol = \"acp\"\ncommand = [\"a-program-that-is-not-here\"]\n";
    let mut gateway = Settings::new().with_config_file(missing).start().await;
    let address = gateway.address().to_string();
    let chromium = Chromium::start();
    let root = Visitor::opens_browser(&chromium, &format!("http://{address}")).await;
    root.logs_in("root").await;
    let api = gateway.logged_in("root").await;

    // Not installed.
    let session = root.opens_new(&api, "missing").await;
    root.prompts("do it").await;
    root.sees_text("[data-cause=not_installed]", "not installed")
        .await;
    root.sees_text("[data-cause=not_installed]", "administrator")
        .await;
    root.clicks("[data-cause=not_installed] [data-part=retry]")
        .await;
    root.waits_until(
        "a second failure",
        "return document.querySelectorAll('[data-cause=not_installed]').length === 2",
    )
    .await;
    let prompts = Journal::of(&session, &api).await.prompts();
    assert_eq!(prompts, ["do it", "do it"]);
    root.opens("/#/admin/agents").await;
    root.sees_text(
        "[data-agent=missing][data-state=not_installed]",
        "Not installed",
    )
    .await;

    // Crashed: only the last run can be tried again.
    root.opens_new(&api, "demo").await;
    root.prompts("/crash").await;
    root.sees_text("[data-cause=crashed]", "The agent crashed.")
        .await;
    root.clicks("[data-cause=crashed] [data-part=retry]").await;
    root.waits_until(
        "a second crash",
        "return document.querySelectorAll('[data-cause=crashed]').length === 2 && document.querySelectorAll('[data-part=retry]').length === 1",
    )
    .await;

    // The gateway was killed.
    let session = root.opens_new(&api, "demo").await;
    root.prompts("/stream 1000 5").await;
    root.sees_answer_begin("10").await;
    gateway.kill();
    root.sees_connection("reconnecting").await;
    gateway.starts_at(&address);
    root.sees_text(
        "[data-cause=gateway_restarted]",
        "The server restarted while the agent was working.",
    )
    .await;
    root.clicks("[data-cause=gateway_restarted] [data-part=retry]")
        .await;
    root.sees_answer("1000").await;
    let api = gateway.logged_in("root").await;
    let ends = Journal::of(&session, &api).await.ends();
    assert_eq!(ends, ["error", "completed"]);
}
