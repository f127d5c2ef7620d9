//! The pages of a gateway that serves no full one.

use crate::actors::{Chromium, Visitor};
use crate::first_run::setup_link;
use crate::staff::{PASSWORD, Settings};

#[tokio::test]
async fn plain_pages_set_up_invite_and_log_in_and_say_how_to_get_the_full_one() {
    let gateway = Settings::untouched()
        .with("SERVER__PAGES", "plain")
        .start()
        .await;
    let base = format!("http://{}", gateway.address());
    let chromium = Chromium::start();
    let (ada, zoe) = tokio::join!(
        Visitor::comes(&chromium, &base),
        Visitor::comes(&chromium, &base)
    );
    ada.opens(&setup_link(gateway.greeting())).await;
    ada.writes("#setup #username", "ada").await;
    ada.writes("#setup #password", PASSWORD).await;
    ada.writes("#setup #repeat", PASSWORD).await;
    ada.clicks("#setup button[type=submit]").await;
    ada.reads("#account h1", "ada").await;

    let made = gateway.browser("ada").await;
    let made = made
        .posts("/api/admin/users", serde_json::json!({ "username": "zoe" }))
        .await
        .is(201)
        .json();
    zoe.opens(made["invite"]["url"].as_str().unwrap()).await;
    zoe.writes("#invite #password", PASSWORD).await;
    zoe.writes("#invite #repeat", PASSWORD).await;
    zoe.clicks("#invite button[type=submit]").await;
    zoe.reads("#account h1", "zoe").await;

    zoe.loses_login().await;
    zoe.opens("/").await;
    zoe.fills_in_login("zoe").await;
    zoe.reads("#account h1", "zoe").await;
    zoe.reads("#account", "server.pages").await;
    zoe.reads("#account", "npm").await;
    assert!(!zoe.has("textarea#prompt").await);
}
