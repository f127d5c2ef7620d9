//! Logins: login, refresh, logout, devices and tickets.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use crate::actors::{Gateway, HttpClient, PASSWORD, Settings};

#[tokio::test]
async fn a_login_response_has_exactly_the_documented_fields() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let mut mia = gateway.anonymous();
    let answer = mia.logs_in("MIA", PASSWORD).await.is(200);
    assert_eq!(answer.header("cache-control"), "no-store");
    let body = answer.json();
    let mut names: Vec<&str> = body
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["expiresAt", "token", "user"]);
    assert_eq!(body["user"]["username"], "mia");
    assert_eq!(body["user"]["role"], "member");
    assert!(body["user"]["id"].as_str().unwrap().starts_with("usr_"));
    let ends: jiff::Timestamp = body["expiresAt"].as_str().unwrap().parse().unwrap();
    let minutes = (ends.as_second() - jiff::Timestamp::now().as_second()) / 60;
    assert!((14..=15).contains(&minutes), "{minutes}");

    let cookie = answer.header("set-cookie");
    for part in [
        "switchboard_refresh=",
        "HttpOnly",
        "SameSite=Strict",
        "Path=/api/auth",
        "Max-Age=",
    ] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(
        !cookie.contains("Secure"),
        "plain http could not send it back: {cookie}"
    );
    let me = mia.me().await.is(200).json();
    assert_eq!(me["user"], body["user"]);
}

#[tokio::test]
async fn behind_https_the_cookie_is_secure_and_under_the_base_path() {
    let gateway = Settings::new()
        .with("SERVER__PUBLIC_URL", "https://agents.example.org")
        .with("SERVER__BASE_PATH", "/team")
        .start()
        .await;
    let mut root = HttpClient::new(gateway.address());
    let body = json!({ "username": "root", "password": PASSWORD });
    let answer = root.posts("/team/api/auth/login", body).await.is(200);
    let cookie = answer.header("set-cookie").to_owned();
    assert!(
        cookie.contains("; Secure") && cookie.contains("Path=/team/api/auth"),
        "{cookie}"
    );
    assert!(
        answer
            .header("strict-transport-security")
            .contains("max-age")
    );
    root.stores_login(answer);
    root.gets("/team/api/auth/me").await.is(200);
    root.gets("/api/auth/me").await.refuses(404, "NOT_FOUND");
    root.gets("/healthz").await.is(200);
    root.gets("/team/healthz").await.is(200);
}

/// The cookies of a response, as a browser would send them.
fn cookies(answer: &crate::actors::HttpResponse) -> Vec<String> {
    let set = answer.headers.get_all("set-cookie").iter();
    set.map(|cookie| {
        let text = cookie.to_str().unwrap();
        text.split(';').next().unwrap().to_owned()
    })
    .collect()
}

#[tokio::test]
async fn a_refresh_whose_answer_got_lost_can_be_repeated_from_the_same_device() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let mut mia = gateway.anonymous();
    let answer = mia.logs_in("mia", PASSWORD).await.is(200);
    let [first, device] = cookies(&answer).try_into().unwrap();
    assert!(device.starts_with("switchboard_device="), "{device}");
    let refreshes = async |refresh: &str, device: Option<&str>| {
        let mut browser = gateway.anonymous();
        let device = device.map(|device| format!("; {device}"));
        browser.cookie = Some(format!("{refresh}{}", device.unwrap_or_default()));
        browser.refreshes().await
    };
    let lost = refreshes(&first, Some(&device)).await.is(200);
    let again = refreshes(&first, Some(&device)).await.is(200);
    let second = cookies(&lost).remove(0);
    assert_eq!(cookies(&again).first(), Some(&second), "the same successor");
    let next = refreshes(&second, Some(&device)).await.is(200);
    // The successor was used: now it is a theft.
    let late = refreshes(&first, Some(&device)).await;
    late.refuses(401, "AUTH_FAILED");
    let ended = refreshes(&cookies(&next)[0], Some(&device)).await;
    ended.refuses(401, "AUTH_FAILED");

    let mut ben = gateway.anonymous();
    let answer = ben.logs_in("mia", PASSWORD).await.is(200);
    let first = cookies(&answer).remove(0);
    refreshes(&first, None).await.is(200);
    let stolen = refreshes(&first, None).await;
    stolen.refuses(401, "AUTH_FAILED");
}

#[tokio::test]
async fn behind_https_a_refresh_cookie_without_the_prefix_is_not_read() {
    let gateway = Settings::new()
        .with("SERVER__PUBLIC_URL", "https://agents.example.org")
        .start()
        .await;
    let mut root = gateway.logged_in("root").await;
    let secure = root.cookie.clone().unwrap();
    let plain = secure.strip_prefix("__Secure-").expect("the prefix");
    root.cookie = Some(plain.to_owned());
    root.refreshes().await.refuses(401, "AUTH_FAILED");
    root.cookie = Some(secure);
    root.refreshes().await.is(200);
}

/// The claims in a device cookie.
fn claims(cookie: &str) -> serde_json::Value {
    let payload = cookie.split('.').nth(1).unwrap();
    let payload = URL_SAFE_NO_PAD.decode(payload).unwrap();
    serde_json::from_slice(&payload).unwrap()
}

#[tokio::test]
async fn a_refresh_renews_the_cookie_of_its_device_and_of_no_other() {
    let gateway = Gateway::start().await;
    for name in ["mia", "ben"] {
        gateway.adds_user(name, "member");
    }
    let mut browser = gateway.anonymous();
    let answer = browser.logs_in("mia", PASSWORD).await.is(200);
    let [refresh, device] = cookies(&answer).try_into().unwrap();
    browser.cookie = Some(format!("{refresh}; {device}"));
    let answer = browser.refreshes().await.is(200);
    let set = answer.headers.get_all("set-cookie").iter();
    let set: Vec<&str> = set.map(|cookie| cookie.to_str().unwrap()).collect();
    let renewed = set
        .iter()
        .find(|set| set.starts_with("switchboard_device="));
    let renewed = renewed.expect("the device cookie is set again");
    assert_eq!(claims(renewed)["jti"], claims(&device)["jti"]);
    let life = renewed.split("Max-Age=").nth(1).unwrap();
    let life: u64 = life.split(';').next().unwrap().parse().unwrap();
    assert!(life > 364 * 24 * 3600, "{renewed}");

    let mut other = gateway.anonymous();
    let answer = other.logs_in("ben", PASSWORD).await.is(200);
    other.cookie = Some(format!("{}; {device}", cookies(&answer)[0]));
    let answer = other.refreshes().await.is(200);
    assert_eq!(cookies(&answer).len(), 1, "not ben's device");
}

#[tokio::test]
async fn a_failed_login_does_not_reveal_whether_the_name_exists() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    gateway.adds_user("out", "member");
    gateway.prints(&["user", "disable", "out"]);
    gateway.prints(&["user", "add", "invited"]);
    let mut visitor = gateway.anonymous();
    let mut answers = Vec::new();
    for (name, password) in [
        ("mia", "wrong password"),
        ("nobody", "wrong password"),
        ("out", PASSWORD),
        ("invited", "wrong password"),
        ("not a name!", "wrong password"),
        ("", ""),
    ] {
        let mut body = visitor
            .logs_in(name, password)
            .await
            .refuses(401, "AUTH_FAILED")
            .json();
        body["requestId"].take();
        answers.push(body);
    }
    assert!(
        answers.windows(2).all(|pair| pair[0] == pair[1]),
        "{answers:?}"
    );
}

#[tokio::test]
async fn a_refresh_token_rotates_and_its_reuse_ends_the_login() {
    let gateway = Gateway::start().await;
    let mut root = gateway.logged_in("root").await;
    let (stolen, first_token) = (root.cookie.clone(), root.token.clone());
    root.refreshes().await.is(200);
    assert_ne!(root.cookie, stolen);
    assert_ne!(root.token, first_token);
    root.me().await.is(200);
    let other_device = gateway.logged_in("root").await;

    let mut thief = gateway.anonymous();
    thief.cookie = stolen;
    let refused = thief.refreshes().await.refuses(401, "AUTH_FAILED");
    assert!(refused.header("set-cookie").contains("Max-Age=0"));
    root.me().await.refuses(401, "AUTH_FAILED");
    root.refreshes().await.refuses(401, "AUTH_FAILED");
    other_device.me().await.is(200);
}

#[tokio::test]
async fn a_made_up_refresh_cookie_ends_no_login() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    for cookie in [
        "",
        "switchboard_refresh=",
        "switchboard_refresh=x",
        "other=1",
    ] {
        let mut eve = gateway.anonymous();
        eve.cookie = Some(cookie.to_owned());
        eve.refreshes().await.refuses(401, "AUTH_FAILED");
    }
    root.me().await.is(200);
}

#[tokio::test]
async fn a_logout_ends_this_login_and_no_other() {
    let gateway = Gateway::start().await;
    let mut laptop = gateway.logged_in("root").await;
    let phone = gateway.logged_in("root").await;
    let out = laptop.sends("POST", "/api/auth/logout", None).await.is(204);
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    laptop.me().await.refuses(401, "AUTH_FAILED");
    laptop.refreshes().await.refuses(401, "AUTH_FAILED");
    phone.me().await.is(200);
}

#[tokio::test]
async fn a_device_is_revoked_from_another() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let laptop = gateway.logged_in("root").await;
    let phone = gateway.logged_in("root").await;
    let mia = gateway.logged_in("mia").await;
    let logins = laptop.gets("/api/auth/logins").await.is(200).json()["logins"].clone();
    let logins = logins.as_array().unwrap();
    assert_eq!(logins.len(), 2);
    let phone_id = logins
        .iter()
        .find(|login| login["current"] == false)
        .unwrap()["id"]
        .clone();
    let path = format!("/api/auth/logins/{}", phone_id.as_str().unwrap());
    mia.sends("DELETE", &path, None)
        .await
        .refuses(404, "NOT_FOUND");
    phone.me().await.is(200);
    laptop.sends("DELETE", &path, None).await.is(204);
    phone.me().await.refuses(401, "AUTH_FAILED");
    laptop
        .sends("DELETE", &path, None)
        .await
        .refuses(404, "NOT_FOUND");
    laptop
        .sends("DELETE", "/api/auth/logins/nonsense", None)
        .await
        .refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_new_password_ends_the_other_logins() {
    let gateway = Gateway::start().await;
    let mut laptop = gateway.logged_in("root").await;
    let phone = gateway.logged_in("root").await;
    let change =
        |current: &str, new: &str| json!({ "currentPassword": current, "newPassword": new });
    laptop
        .posts("/api/auth/password", change("wrong", "a new password"))
        .await
        .refuses(403, "FORBIDDEN");
    laptop
        .posts("/api/auth/password", change(PASSWORD, "short"))
        .await
        .refuses(422, "VALIDATION_ERROR");
    phone.me().await.is(200);
    laptop
        .posts("/api/auth/password", change(PASSWORD, "a new password"))
        .await
        .is(204);
    laptop.me().await.is(200);
    laptop.refreshes().await.is(200);
    phone.me().await.refuses(401, "AUTH_FAILED");
    gateway
        .anonymous()
        .logs_in("root", PASSWORD)
        .await
        .refuses(401, "AUTH_FAILED");
    gateway
        .anonymous()
        .logs_in("root", "a new password")
        .await
        .is(200);
}

#[tokio::test]
async fn a_login_survives_a_restart_and_a_logout_does_too() {
    let mut gateway = Gateway::start().await;
    let mut kept = gateway.logged_in("root").await;
    let ended = gateway.logged_in("root").await;
    ended.sends("POST", "/api/auth/logout", None).await.is(204);
    gateway.restart();
    let moved = |browser: &HttpClient| {
        let mut moved = HttpClient::new(gateway.address());
        moved.token.clone_from(&browser.token);
        moved.cookie.clone_from(&browser.cookie);
        moved
    };
    moved(&ended).me().await.refuses(401, "AUTH_FAILED");
    kept = moved(&kept);
    kept.me().await.is(200);
    kept.refreshes().await.is(200);
}

#[tokio::test]
async fn only_logged_in_users_get_a_ticket() {
    let gateway = Gateway::start().await;
    gateway
        .anonymous()
        .sends("POST", "/api/auth/ticket", None)
        .await
        .refuses(401, "AUTH_FAILED");
    let root = gateway.logged_in("root").await;
    let one = root
        .sends("POST", "/api/auth/ticket", None)
        .await
        .is(200)
        .json();
    let two = root
        .sends("POST", "/api/auth/ticket", None)
        .await
        .is(200)
        .json();
    assert_ne!(one["ticket"], two["ticket"]);
    let ends: jiff::Timestamp = one["expiresAt"].as_str().unwrap().parse().unwrap();
    assert!(ends.as_second() - jiff::Timestamp::now().as_second() <= 30);
}

#[tokio::test]
async fn a_token_cannot_be_bound_to_an_unknown_session() {
    let gateway = Gateway::start().await;
    let visitor = gateway.anonymous();
    let with = |id: &str| json!({ "username": "root", "password": PASSWORD, "sessionId": id });
    visitor
        .posts(
            "/api/auth/login",
            with("ses_0199c0ffee0070008000000000000000"),
        )
        .await
        .refuses(404, "NOT_FOUND");
    visitor
        .posts("/api/auth/login", with("x"))
        .await
        .refuses(422, "VALIDATION_ERROR");
}

/// Logins verified while the password changed must not survive.
#[tokio::test]
async fn no_login_with_the_old_password_survives_a_new_one() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let mut racing = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let mut browser = gateway.anonymous();
        racing.spawn(async move {
            browser.logs_in("root", PASSWORD).await;
            browser
        });
    }
    let change = json!({ "currentPassword": PASSWORD, "newPassword": "a new password" });
    root.posts("/api/auth/password", change).await.is(204);
    let mut racers = racing.join_all().await;
    for racer in &mut racers {
        racer.me().await.is(401);
        racer.refreshes().await.is(401);
    }
    root.me().await.is(200);
}
