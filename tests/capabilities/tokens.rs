//! Tokens: claims, forgeries, and key rotation.

use std::process::Output;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::actors::{Gateway, HttpClient, Settings};

fn decoded(token: &str) -> (Value, Value, String) {
    let parts: Vec<&str> = token.split('.').collect();
    let read = |part: &str| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    (read(parts[0]), read(parts[1]), parts[2].to_owned())
}

fn joined(header: &Value, claims: &Value, signature: &str) -> String {
    let write = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    format!("{}.{}.{signature}", write(header), write(claims))
}

fn with_token(gateway: &Gateway, token: &str) -> HttpClient {
    let mut browser = gateway.anonymous();
    browser.token = Some(token.to_owned());
    browser
}

#[tokio::test]
async fn a_token_carries_the_documented_claims() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let (header, claims, _) = decoded(root.token.as_deref().unwrap());
    assert_eq!(header["alg"], "EdDSA");
    for name in [
        "sub", "username", "role", "iat", "exp", "iss", "aud", "jti", "typ", "loginId",
    ] {
        assert!(!claims[name].is_null(), "{name} in {claims}");
    }
    let keys = gateway
        .anonymous()
        .gets("/.well-known/jwks.json")
        .await
        .is(200)
        .json();
    assert_eq!(keys["keys"][0]["kid"], header["kid"]);
    assert!(
        keys["keys"][0]["d"].is_null(),
        "a private key is not for the public"
    );
}

#[tokio::test]
async fn forged_tokens_are_refused() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let honest = root.token.clone().unwrap();
    let (header, claims, signature) = decoded(&honest);
    let with_header = |name: &str, value: Value| {
        let mut header = header.clone();
        header[name] = value;
        header
    };
    let with_claim = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        claims
    };
    let mut forged = vec![
        String::new(),
        "x".into(),
        "..".into(),
        "a.b.c".into(),
        format!("{honest}x"),
        honest.rsplit_once('.').unwrap().0.to_owned(),
        joined(&with_header("alg", json!("none")), &claims, ""),
        joined(&with_header("alg", json!("None")), &claims, &signature),
        joined(&with_header("alg", json!("HS256")), &claims, &signature),
        joined(
            &with_header("kid", json!("key_00000000000000000000000000000000")),
            &claims,
            &signature,
        ),
        joined(&with_header("kid", json!(null)), &claims, &signature),
        joined(&header, &with_claim("role", json!("admin2")), &signature),
        joined(&header, &with_claim("exp", json!("4102444800")), &signature),
        joined(
            &header,
            &with_claim("exp", json!(4_102_444_800_i64)),
            &signature,
        ),
        joined(&header, &with_claim("typ", json!("refresh")), &signature),
        joined(&header, &claims, &URL_SAFE_NO_PAD.encode([0; 64])),
    ];
    let stranger = Gateway::start().await;
    forged.push(stranger.logged_in("root").await.token.unwrap());
    for token in forged {
        let answer = with_token(&gateway, &token).me().await;
        answer.refuses(401, "AUTH_FAILED");
    }
    root.me().await.is(200);
}

#[tokio::test]
async fn a_token_is_accepted_only_as_a_single_bearer_header() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let token = root.token.clone().unwrap();
    for headers in [
        vec![("authorization", format!("Basic {token}"))],
        vec![("authorization", token.clone())],
        vec![("authorization", "Bearer".to_owned())],
        vec![
            ("authorization", format!("Bearer {token}")),
            ("authorization", "Bearer x".to_owned()),
        ],
        vec![("cookie", format!("token={token}"))],
        vec![("x-auth-token", token.clone())],
    ] {
        let mut browser = gateway.anonymous();
        browser.headers = headers;
        browser.me().await.refuses(401, "AUTH_FAILED");
    }
    gateway
        .anonymous()
        .gets(&format!("/api/auth/me?token={token}"))
        .await
        .refuses(401, "AUTH_FAILED");
    let mut lower = gateway.anonymous();
    lower.headers = vec![("authorization", format!("bearer {token}"))];
    lower.me().await.is(200);
}

fn printed(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[tokio::test]
async fn a_token_from_the_command_line_works_until_it_expires_or_is_revoked() {
    let gateway = Gateway::start().await;
    let token = printed(&gateway.runs(&["token", "create", "--user", "root", "--ttl", "1h"]));
    let program = with_token(&gateway, &token);
    let me = program.me().await.is(200).json();
    let logins = program.gets("/api/auth/logins").await.json();
    assert_eq!(logins["logins"][0]["kind"], "token");
    let path = format!("/api/auth/logins/{}", me["login"]["id"].as_str().unwrap());
    gateway
        .logged_in("root")
        .await
        .sends("DELETE", &path, None)
        .await
        .is(204);
    program.me().await.refuses(401, "AUTH_FAILED");

    let short = printed(&gateway.runs(&["token", "create", "--user", "root", "--ttl", "1s"]));
    let program = with_token(&gateway, &short);
    let expired = loop {
        let answer = program.me().await;
        if answer.status != 200 {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    expired.refuses(401, "SESSION_EXPIRED");
}

#[tokio::test]
async fn after_key_rotation_old_tokens_stay_valid() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let kid = |browser: &HttpClient| decoded(browser.token.as_deref().unwrap()).0["kid"].clone();
    let old = kid(&root);
    gateway.prints(&["key", "rotate"]);
    let visitor = gateway.anonymous();
    let started = std::time::Instant::now();
    loop {
        let keys = visitor.gets("/.well-known/jwks.json").await.json();
        if keys["keys"].as_array().unwrap().len() == 2 {
            break;
        }
        assert!(
            started.elapsed().as_millis() < 1000,
            "a running gateway notices within a second"
        );
        tokio::task::yield_now().await;
    }
    root.me().await.is(200);
    let fresh = gateway.logged_in("root").await;
    assert_ne!(kid(&fresh), old);
    fresh.me().await.is(200);
    let listed: Value = serde_json::from_str(&gateway.prints(&["key", "list", "--json"])).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert!(
        listed[0]["retiredAt"].is_null() && !listed[1]["retiredAt"].is_null(),
        "{listed}"
    );
}

#[tokio::test]
async fn a_configured_signing_key_is_used_and_the_example_key_refused() {
    let key = "-----BEGIN PRIVATE KEY-----\n\
               MC4CAQAwBQYDK2VwBCIEIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH\n\
               -----END PRIVATE KEY-----\n";
    let gateway = Settings::new().with("AUTH__SIGNING_KEY", key).start().await;
    gateway.logged_in("root").await.me().await.is(200);
    let refused = gateway.runs(&["key", "rotate"]);
    assert_eq!(refused.status.code(), Some(1));

    let example = key.replace(
        "AcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH",
        "J1hsZ3v_VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g",
    );
    let dir = tempfile::tempdir().unwrap();
    let variables = [("SWITCHBOARD__AUTH__SIGNING_KEY", example.replace('_', "/"))];
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let refused = crate::actors::program(dir.path(), &["config", "check"], &variables);
    assert_eq!(refused.status.code(), Some(78));
    let shown = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(shown.contains("published example"), "{shown}");
}

#[tokio::test]
async fn revoking_a_stolen_key_invalidates_its_tokens_and_keeps_logins() {
    let gateway = Gateway::start().await;
    let mut root = gateway.logged_in("root").await;
    gateway.prints(&["key", "rotate", "--drop-old"]);
    root.sees_within_a_second("/api/auth/me", 401).await;
    root.refreshes().await.is(200);
    root.me().await.is(200);
}

#[tokio::test]
async fn a_command_without_the_gateways_signing_key_is_refused_with_advice() {
    let key = "-----BEGIN PRIVATE KEY-----\n\
               MC4CAQAwBQYDK2VwBCIEIAkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJ\n\
               -----END PRIVATE KEY-----\n";
    let mut gateway = Gateway::start().await;
    let old = gateway.logged_in("root").await;
    gateway.set("AUTH__SIGNING_KEY", Some(key));
    gateway.restart();
    let mut moved = gateway.anonymous();
    moved.token = old.token;
    moved.me().await.is(200);
    let token = gateway.prints(&["token", "create", "--user", "root"]);
    let program = with_token(&gateway, token.trim());
    program.me().await.is(200);
    gateway.set("AUTH__SIGNING_KEY", None);
    let refused = gateway.runs(&["token", "create", "--user", "root"]);
    assert_eq!(refused.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        shown.contains("auth.signing_key") && shown.contains("key rotate"),
        "{shown}"
    );
    gateway.prints(&["key", "rotate"]);
    gateway.restart();
    let program = with_token(&gateway, token.trim());
    program.me().await.is(200);
}
