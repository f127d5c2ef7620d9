//! First run: from an empty directory to the first account.

use serde_json::json;

use crate::actors::{Gateway, PASSWORD, Settings};

/// The token behind `#t=` of the link in a text.
pub(crate) fn link_token(text: &str) -> String {
    let token = text
        .split("#t=")
        .nth(1)
        .unwrap_or_else(|| panic!("no link in {text}"));
    token.split_whitespace().next().unwrap().to_owned()
}

fn setup(token: &str, username: &str) -> serde_json::Value {
    json!({ "token": token, "username": username, "password": PASSWORD })
}

#[tokio::test]
async fn the_printed_link_creates_the_first_administrator_once() {
    let gateway = Settings::without_admin().start().await;
    let token = link_token(gateway.startup_output());
    let mut ada = gateway.anonymous();
    let made = ada.posts("/api/setup", setup(&token, "Ada")).await;
    let made = ada.stores_login(made).is(200).json();
    assert_eq!(made["user"]["username"], "ada");
    assert_eq!(made["user"]["role"], "admin");
    ada.me().await.is(200);
    ada.gets("/api/admin/users").await.is(200);

    let eve = gateway.anonymous();
    eve.posts("/api/setup", setup(&token, "eve"))
        .await
        .refuses(403, "FORBIDDEN");
    assert_eq!(
        ada.gets("/api/admin/users").await.json()["users"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_guessed_setup_link_creates_no_account() {
    let gateway = Settings::without_admin().start().await;
    let eve = gateway.anonymous();
    for token in [
        "",
        "guess",
        &"A".repeat(43),
        &link_token(gateway.startup_output()).to_uppercase(),
    ] {
        eve.posts("/api/setup", setup(token, "eve"))
            .await
            .refuses(403, "FORBIDDEN");
    }
    assert_eq!(gateway.prints(&["user", "list", "--json"]).trim(), "[]");
}

#[tokio::test]
async fn of_concurrent_setups_exactly_one_wins() {
    let gateway = Settings::without_admin().start().await;
    let token = link_token(gateway.startup_output());
    let mut attempts = tokio::task::JoinSet::new();
    for number in 0..8 {
        let browser = gateway.anonymous();
        let body = setup(&token, &format!("user{number}"));
        attempts.spawn(async move { browser.posts("/api/setup", body).await.status });
    }
    let statuses = attempts.join_all().await;
    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        1,
        "{statuses:?}"
    );
}

#[tokio::test]
async fn setup_url_replaces_the_link_while_there_is_no_administrator() {
    let gateway = Settings::without_admin().start().await;
    let first = link_token(gateway.startup_output());
    let second = link_token(&gateway.prints(&["setup-url"]));
    let ada = gateway.anonymous();
    ada.posts("/api/setup", setup(&first, "ada"))
        .await
        .refuses(403, "FORBIDDEN");
    ada.posts("/api/setup", setup(&second, "ada")).await.is(200);
    let refused = gateway.runs(&["setup-url"]);
    assert_eq!(refused.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(shown.contains("administrator already"), "{shown}");
}

#[tokio::test]
async fn the_environment_creates_the_first_administrator_and_later_changes_nothing() {
    let mut gateway = Gateway::start().await;
    assert!(
        !gateway.startup_output().contains("/setup#"),
        "{}",
        gateway.startup_output()
    );
    let root = gateway.logged_in("root").await;
    assert_eq!(root.me().await.json()["user"]["role"], "admin");
    gateway.runs_with_input(
        &["user", "passwd", "root", "--password-stdin"],
        "another password",
    );
    gateway.restart();
    gateway
        .anonymous()
        .logs_in("root", PASSWORD)
        .await
        .refuses(401, "AUTH_FAILED");
    gateway
        .anonymous()
        .logs_in("root", "another password")
        .await
        .is(200);
}

#[tokio::test]
async fn a_weak_password_is_refused_and_the_link_still_works() {
    let gateway = Settings::without_admin().start().await;
    let token = link_token(gateway.startup_output());
    let ada = gateway.anonymous();
    for password in ["short", "password", "adaadaada", &"x".repeat(2000)] {
        let body = json!({ "token": token, "username": "adaadaada", "password": password });
        let refused = ada
            .posts("/api/setup", body)
            .await
            .refuses(422, "VALIDATION_ERROR");
        assert_eq!(refused.json()["details"]["field"], "password");
    }
    ada.posts("/api/setup", setup(&token, "ada")).await.is(200);
}

#[tokio::test]
async fn a_second_gateway_on_the_same_data_is_refused() {
    let gateway = Gateway::start().await;
    let second = gateway.runs(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(shown.contains(&gateway.pid().to_string()), "{shown}");
    gateway.anonymous().gets("/healthz").await.is(200);
}
