//! From an empty directory to the first answer.

use crate::actors::{Chromium, Journal, Visitor};
use crate::staff::{PASSWORD, Settings};

/// The link that a gateway prints as long as nobody has set it up.
pub(crate) fn setup_link(greeting: &str) -> String {
    let mut words = greeting.split_whitespace();
    let link = words.rfind(|word| word.contains("/setup#t="));
    link.unwrap_or_else(|| panic!("no link in {greeting}"))
        .to_owned()
}

#[tokio::test]
async fn the_printed_link_leads_to_the_first_answer() {
    let gateway = Settings::untouched().start().await;
    let chromium = Chromium::start();
    let ada = Visitor::comes(&chromium, &format!("http://{}", gateway.address())).await;

    ada.opens(&setup_link(gateway.greeting())).await;
    ada.writes("#setup #username", "ada").await;
    ada.writes("#setup #password", PASSWORD).await;
    ada.writes("#setup #repeat", PASSWORD).await;
    ada.clicks("#setup button[type=submit]").await;
    ada.sees_workbench().await;
    let address: String = ada.looks("return location.href").await;
    assert!(
        !address.contains("setup") && !address.contains("t="),
        "the link is still in the address: {address}"
    );

    let session = ada.begins("/stream 40 5").await;
    ada.sees_answer("40").await;
    ada.sees_rest().await;
    let journal = Journal::of(&session, &gateway.browser("ada").await).await;
    assert_eq!(ada.reads_answers().await, journal.answers());
    assert_eq!(journal.ends(), ["completed"]);
}
