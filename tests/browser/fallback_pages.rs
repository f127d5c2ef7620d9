//! Fallback pages: a gateway without the bundled page.

use crate::actors::{Chromium, Visitor};
use crate::api_actors::{PASSWORD, Settings};
use crate::first_run::setup_link;

#[tokio::test]
async fn fallback_pages_set_up_invite_and_log_in_and_say_how_to_build_the_full_page() {
    let gateway = Settings::without_admin()
        .with("SERVER__PAGES", "plain")
        .start()
        .await;
    let base = format!("http://{}", gateway.address());
    let chromium = Chromium::start();
    let (ada, zoe) = tokio::join!(
        Visitor::opens_browser(&chromium, &base),
        Visitor::opens_browser(&chromium, &base)
    );
    ada.opens(&setup_link(gateway.startup_output())).await;
    ada.fills_in("#setup #username", "ada").await;
    ada.fills_in("#setup #password", PASSWORD).await;
    ada.fills_in("#setup #repeat", PASSWORD).await;
    ada.clicks("#setup button[type=submit]").await;
    ada.sees_text("#account h1", "ada").await;

    let made = gateway.logged_in("ada").await;
    let made = made
        .posts("/api/admin/users", serde_json::json!({ "username": "zoe" }))
        .await
        .is(201)
        .json();
    zoe.opens(made["invite"]["url"].as_str().unwrap()).await;
    zoe.fills_in("#invite #password", PASSWORD).await;
    zoe.fills_in("#invite #repeat", PASSWORD).await;
    zoe.clicks("#invite button[type=submit]").await;
    zoe.sees_text("#account h1", "zoe").await;

    zoe.loses_login().await;
    zoe.opens("/").await;
    zoe.fills_in_login("zoe").await;
    zoe.sees_text("#account h1", "zoe").await;
    zoe.sees_text("#account", "server.pages").await;
    zoe.sees_text("#account", "npm").await;
    assert!(!zoe.has("textarea#prompt").await);
}
