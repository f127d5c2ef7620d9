//! First run: from the printed setup link to the first answer.

use crate::actors::{Chromium, Journal, Visitor};
use crate::api_actors::{PASSWORD, Settings};

/// The setup link that a gateway prints without an administrator.
pub(crate) fn setup_link(startup_output: &str) -> String {
    let mut words = startup_output.split_whitespace();
    let link = words.rfind(|word| word.contains("/setup#t="));
    link.unwrap_or_else(|| panic!("no link in {startup_output}"))
        .to_owned()
}

#[tokio::test]
async fn the_printed_link_leads_to_the_first_answer() {
    let gateway = Settings::without_admin().start().await;
    let chromium = Chromium::start();
    let ada = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;

    // Without an account the page says what to do, and has nothing to fill in.
    ada.opens("/").await;
    ada.sees_text("[data-part=setup-needed]", "switchboard setup-url")
        .await;
    assert!(!ada.has("#login").await);
    ada.opens(&setup_link(gateway.startup_output())).await;
    ada.fills_in("#setup #username", "ada").await;
    ada.fills_in("#setup #password", PASSWORD).await;
    ada.fills_in("#setup #repeat", PASSWORD).await;
    ada.clicks("#setup button[type=submit]").await;
    ada.sees_workbench().await;
    let address: String = ada.runs_script("return location.href").await;
    assert!(
        !address.contains("setup") && !address.contains("t="),
        "the link is still in the address: {address}"
    );

    let session = ada.starts_session("/stream 40 5").await;
    ada.sees_answer("40").await;
    ada.sees_idle().await;
    let journal = Journal::of(&session, &gateway.logged_in("ada").await).await;
    assert_eq!(ada.reads_answers().await, journal.answers());
    assert_eq!(journal.ends(), ["completed"]);
}
