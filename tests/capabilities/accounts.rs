//! Accounts: inviting, changing, disabling and removing users.

use serde_json::{Value, json};

use crate::actors::{Gateway, HttpClient, PASSWORD};
use crate::first_run::link_token;

async fn account(admin: &HttpClient, name: &str) -> Value {
    let users = admin.gets("/api/admin/users").await.is(200).json();
    let users = users["users"].as_array().unwrap().clone();
    users
        .into_iter()
        .find(|user| user["username"] == name)
        .unwrap()
}

async fn path(admin: &HttpClient, name: &str) -> String {
    let id = account(admin, name).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    format!("/api/admin/users/{id}")
}

#[tokio::test]
async fn an_invited_user_sets_a_password_and_is_logged_in() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let made = root
        .posts("/api/admin/users", json!({ "username": "mia" }))
        .await
        .is(201)
        .json();
    assert_eq!(made["user"]["invited"], true);
    let token = link_token(made["invite"]["url"].as_str().unwrap());
    let mut mia = gateway.anonymous();
    let accept = json!({ "token": token, "password": PASSWORD });
    let accepted = mia.posts("/api/invites/accept", accept.clone()).await;
    let accepted = mia.stores_login(accepted).is(200).json();
    assert_eq!(accepted["user"]["username"], "mia");
    mia.me().await.is(200);
    mia.posts("/api/invites/accept", accept)
        .await
        .refuses(403, "FORBIDDEN");
    gateway.logged_in("mia").await.me().await.is(200);
    mia.gets("/api/admin/users").await.refuses(403, "FORBIDDEN");
}

#[tokio::test]
async fn an_invite_from_the_command_line_works_the_same() {
    let gateway = Gateway::start().await;
    let printed = gateway.prints(&["user", "add", "mia"]);
    assert!(
        printed.contains(&format!("http://{}/invite#t=", gateway.address())),
        "{printed}"
    );
    let accept = json!({ "token": link_token(&printed), "password": PASSWORD });
    gateway
        .anonymous()
        .posts("/api/invites/accept", accept)
        .await
        .is(200);
}

#[tokio::test]
async fn a_newer_link_replaces_the_older_one() {
    let gateway = Gateway::start().await;
    let first = link_token(&gateway.prints(&["user", "add", "mia"]));
    let second = link_token(&gateway.prints(&["user", "passwd", "mia"]));
    let accept = |token: &str| json!({ "token": token, "password": PASSWORD });
    let mia = gateway.anonymous();
    mia.posts("/api/invites/accept", accept(&first))
        .await
        .refuses(403, "FORBIDDEN");
    mia.posts("/api/invites/accept", accept(&second))
        .await
        .is(200);
}

#[tokio::test]
async fn a_password_reset_ends_earlier_logins() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let before = gateway.logged_in("mia").await;
    let root = gateway.logged_in("root").await;
    let path = format!("{}/invite", path(&root, "mia").await);
    let link = root.sends("POST", &path, None).await.is(200).json();
    before.me().await.is(200);
    let token = link_token(link["url"].as_str().unwrap());
    let accept = json!({ "token": token, "password": "the new password" });
    gateway
        .anonymous()
        .posts("/api/invites/accept", accept)
        .await
        .is(200);
    before.me().await.refuses(401, "AUTH_FAILED");
}

#[tokio::test]
async fn a_disabled_user_is_locked_out_at_once_and_can_be_enabled_again() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let mut mia = gateway.logged_in("mia").await;
    let root = gateway.logged_in("root").await;
    let path = path(&root, "mia").await;
    let body = root
        .sends("PATCH", &path, Some(json!({ "disabled": true })))
        .await
        .is(200)
        .json();
    assert_eq!(body["disabled"], true);
    mia.me().await.refuses(401, "AUTH_FAILED");
    mia.refreshes().await.refuses(401, "AUTH_FAILED");
    gateway
        .anonymous()
        .logs_in("mia", PASSWORD)
        .await
        .refuses(401, "AUTH_FAILED");
    root.sends("PATCH", &path, Some(json!({ "disabled": false })))
        .await
        .is(200);
    mia.me().await.refuses(401, "AUTH_FAILED");
    gateway.logged_in("mia").await.me().await.is(200);
}

#[tokio::test]
async fn a_command_line_change_takes_effect_in_the_gateway_within_a_second() {
    let gateway = Gateway::start().await;
    for (name, command) in [
        ("ann", vec!["user", "disable", "ann"]),
        ("ben", vec!["user", "remove", "ben"]),
        ("cat", vec!["user", "role", "cat", "admin"]),
    ] {
        gateway.adds_user(name, "member");
        let browser = gateway.logged_in(name).await;
        browser.me().await.is(200);
        gateway.prints(&command);
        browser.sees_within_a_second("/api/auth/me", 401).await;
    }
    gateway.adds_user("dan", "member");
    let dan = gateway.logged_in("dan").await;
    let changed = gateway.runs_with_input(
        &["user", "passwd", "dan", "--password-stdin"],
        "the new password",
    );
    assert!(changed.status.success());
    dan.sees_within_a_second("/api/auth/me", 401).await;
}

#[tokio::test]
async fn a_new_role_needs_a_refresh_and_nothing_more() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let mut mia = gateway.logged_in("mia").await;
    let root = gateway.logged_in("root").await;
    let path = path(&root, "mia").await;
    root.sends("PATCH", &path, Some(json!({ "role": "admin" })))
        .await
        .is(200);
    mia.me().await.refuses(401, "AUTH_FAILED");
    mia.refreshes().await.is(200);
    mia.gets("/api/admin/users").await.is(200);
}

#[tokio::test]
async fn the_last_administrator_cannot_lock_everyone_out() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let path = path(&root, "root").await;
    for body in [json!({ "disabled": true }), json!({ "role": "member" })] {
        root.sends("PATCH", &path, Some(body))
            .await
            .refuses(409, "VALIDATION_ERROR");
    }
    root.sends("DELETE", &path, None)
        .await
        .refuses(409, "VALIDATION_ERROR");
    let refused = gateway.runs(&["user", "remove", "root"]);
    assert_eq!(refused.status.code(), Some(1));
    root.me().await.is(200);
}

#[tokio::test]
async fn members_cannot_manage_accounts() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let root = gateway.logged_in("root").await;
    let target = path(&root, "root").await;
    let mia = gateway.logged_in("mia").await;
    for (who, status, code) in [
        (&mia, 403, "FORBIDDEN"),
        (&gateway.anonymous(), 401, "AUTH_FAILED"),
    ] {
        let new = json!({ "username": "eve", "role": "admin" });
        who.posts("/api/admin/users", new)
            .await
            .refuses(status, code);
        who.gets("/api/admin/users").await.refuses(status, code);
        who.gets(&target).await.refuses(status, code);
        who.sends("PATCH", &target, Some(json!({ "disabled": true })))
            .await
            .refuses(status, code);
        who.sends("DELETE", &target, None)
            .await
            .refuses(status, code);
        who.sends("POST", &format!("{target}/invite"), None)
            .await
            .refuses(status, code);
        who.gets("/metrics").await.refuses(status, code);
    }
    assert_eq!(
        root.gets("/api/admin/users").await.json()["users"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn users_are_listed_in_pages() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    for name in ["ann", "ben", "cat"] {
        root.posts("/api/admin/users", json!({ "username": name }))
            .await
            .is(201);
    }
    root.posts("/api/admin/users", json!({ "username": "ANN" }))
        .await
        .refuses(409, "VALIDATION_ERROR");
    let mut seen = Vec::new();
    let mut page = "/api/admin/users?limit=2".to_owned();
    loop {
        let listed = root.gets(&page).await.is(200).json();
        for user in listed["users"].as_array().unwrap() {
            seen.push(user["username"].as_str().unwrap().to_owned());
        }
        match listed["next"].as_str() {
            Some(next) => page = format!("/api/admin/users?limit=2&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ["ann", "ben", "cat", "root"]);
}

#[tokio::test]
async fn a_removed_user_is_gone() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let mia = gateway.logged_in("mia").await;
    let root = gateway.logged_in("root").await;
    let path = path(&root, "mia").await;
    root.sends("DELETE", &path, None).await.is(204);
    mia.me().await.refuses(401, "AUTH_FAILED");
    root.gets(&path).await.refuses(404, "NOT_FOUND");
    root.sends("DELETE", &path, None)
        .await
        .refuses(404, "NOT_FOUND");
    gateway.adds_user("mia", "member");
    mia.me().await.refuses(401, "AUTH_FAILED");
}
