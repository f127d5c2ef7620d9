//! Limits that users meet, at their boundary.

use serde_json::{Value, json};

use crate::actors::{Browser, Gateway, PASSWORD, Settings};

fn wrong() -> Value {
    json!({ "username": "nobody", "password": "wrong password" })
}

#[tokio::test]
async fn the_fifth_login_in_a_minute_passes_and_the_sixth_does_not() {
    let gateway = Settings::new()
        .with("LIMITS__LOGINS_PER_MINUTE", "5")
        .start()
        .await;
    let mut root = gateway.visitor();
    for left in (0..5).rev() {
        let answer = root.logs_in("root", PASSWORD).await.is(200);
        assert!(
            answer.header("ratelimit").contains(&format!("r={left}")),
            "{:?}",
            answer.headers
        );
    }
    let refused = root
        .logs_in("root", PASSWORD)
        .await
        .refuses(429, "RATE_LIMITED");
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert!(
        refused.header("ratelimit-policy").contains("q=5;w=60"),
        "{:?}",
        refused.headers
    );
    assert!(
        refused.header("ratelimit").contains("r=0"),
        "{:?}",
        refused.headers
    );
    let millis = refused.json()["details"]["retryAfterMs"].as_u64().unwrap();
    assert!(millis <= 60_000, "{millis}");
    root.me().await.is(200);
    gateway.visitor().gets("/healthz").await.is(200);
}

#[tokio::test]
async fn an_unreadable_attempt_is_an_attempt() {
    let gateway = Settings::new()
        .with("LIMITS__LOGINS_PER_MINUTE", "5")
        .start()
        .await;
    let visitor = gateway.visitor();
    for _ in 0..5 {
        visitor
            .posts("/api/auth/login", json!(7))
            .await
            .refuses(422, "VALIDATION_ERROR");
    }
    visitor
        .posts("/api/auth/login", wrong())
        .await
        .refuses(429, "RATE_LIMITED");
}

#[tokio::test]
async fn requests_of_one_address_are_bounded() {
    let gateway = Settings::new()
        .with("LIMITS__REQUESTS_PER_MINUTE", "1")
        .with("LIMITS__REQUEST_BURST", "10")
        .with("LIMITS__EXEMPT_ADDRESSES", "[]")
        .start()
        .await;
    let visitor = gateway.visitor();
    for _ in 0..10 {
        visitor.gets("/version").await.is(200);
    }
    let refused = visitor.gets("/version").await.refuses(429, "RATE_LIMITED");
    assert!(!refused.header("retry-after").is_empty());
}

#[tokio::test]
async fn connections_of_one_address_are_bounded() {
    let gateway = Settings::new()
        .with("SERVER__MAX_CONNECTIONS_PER_ADDRESS", "3")
        .with("LIMITS__EXEMPT_ADDRESSES", "[]")
        .start()
        .await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut wire = gateway.wire().await;
        wire.writes(&format!(
            "GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n",
            gateway.address()
        ))
        .await;
        assert!(wire.reads_some().await.starts_with("HTTP/1.1 200"));
        held.push(wire);
    }
    let (nothing, _) = gateway.wire().await.reads_to_the_end().await;
    assert_eq!(nothing, "");
    drop(held);
    let visitor = gateway.visitor();
    let started = std::time::Instant::now();
    while visitor.tries_health().await.is_err() {
        assert!(
            started.elapsed().as_secs() < 5,
            "a closed connection makes room"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn everyone_behind_a_trusted_proxy_has_their_own_budget() {
    let gateway = Settings::new()
        .with("LIMITS__LOGINS_PER_MINUTE", "2")
        .with("SERVER__TRUSTED_PROXIES", "127.0.0.1")
        .start()
        .await;
    let attempt = async |browser: Browser, status: u16| {
        browser.posts("/api/auth/login", wrong()).await.is(status);
    };
    for _ in 0..2 {
        attempt(gateway.visitor().through_proxy("203.0.113.7"), 401).await;
    }
    attempt(gateway.visitor().through_proxy("203.0.113.7"), 429).await;
    attempt(gateway.visitor().through_proxy("203.0.113.8"), 401).await;
    attempt(
        gateway.visitor().through_proxy("198.51.100.1, 203.0.113.7"),
        429,
    )
    .await;
    // One household has many IPv6 addresses.
    attempt(gateway.visitor().through_proxy("2001:db8::1"), 401).await;
    attempt(gateway.visitor().through_proxy("2001:db8::2"), 401).await;
    attempt(gateway.visitor().through_proxy("2001:db8::3"), 429).await;
    attempt(gateway.visitor().through_proxy("2001:db8:0:1::1"), 401).await;
}

#[tokio::test]
async fn a_stranger_cannot_choose_an_address() {
    let gateway = Settings::new()
        .with("LIMITS__LOGINS_PER_MINUTE", "5")
        .start()
        .await;
    for number in 0..5 {
        let liar = gateway
            .visitor()
            .through_proxy(&format!("203.0.113.{number}"));
        liar.posts("/api/auth/login", wrong()).await.is(401);
    }
    let liar = gateway.visitor().through_proxy("203.0.113.99");
    liar.posts("/api/auth/login", wrong())
        .await
        .refuses(429, "RATE_LIMITED");
}

/// Many addresses try many names at once: the hashing queue says no instead of growing, the limiter
/// remembers no more addresses than it may, and others are served as quickly as before.
#[tokio::test]
async fn a_login_flood_leaves_the_gateway_quick_and_small() {
    let gateway = Settings::new()
        .with("SERVER__TRUSTED_PROXIES", "127.0.0.1")
        .with("LIMITS__TRACKED_ADDRESSES", "100")
        .start()
        .await;
    let root = gateway.browser("root").await;
    let before = resident(&root).await;
    let mut flood = tokio::task::JoinSet::new();
    for number in 0..400 {
        let address = format!("203.0.{}.{}", 100 + number / 250, number % 250);
        let browser = gateway.visitor().through_proxy(&address);
        let body = json!({ "username": format!("user{number}"), "password": "wrong password" });
        flood.spawn(async move { browser.posts("/api/auth/login", body).await.status });
    }
    let mut slowest = std::time::Duration::ZERO;
    while !flood.is_empty() {
        let started = std::time::Instant::now();
        root.gets("/healthz").await.is(200);
        slowest = slowest.max(started.elapsed());
        while flood.try_join_next().is_some_and(|status| {
            let status = status.unwrap();
            assert!(status == 401 || status == 503, "{status}");
            true
        }) {}
    }
    assert!(slowest.as_millis() < 1000, "a probe took {slowest:?}");
    let after = resident(&root).await;
    assert!(
        after < before + 120 * 1024 * 1024,
        "{before} grew to {after}"
    );
    let metrics = root.gets("/metrics").await.text;
    let remembered: u64 = metric(&metrics, "switchboard_limits_remembered{limit=\"logins\"}");
    assert!(remembered <= 100, "{remembered}");
}

fn metric(metrics: &str, name: &str) -> u64 {
    let line = metrics.lines().find(|line| line.starts_with(name)).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

async fn resident(root: &Browser) -> u64 {
    metric(
        &root.gets("/metrics").await.is(200).text,
        "process_resident_memory_bytes",
    )
}

#[tokio::test]
async fn guessing_one_account_becomes_slow_and_a_good_login_forgets_it() {
    let gateway = Gateway::start().await;
    let mut visitor = gateway.visitor();
    for _ in 0..4 {
        visitor.logs_in("root", "wrong password").await.is(401);
    }
    let started = std::time::Instant::now();
    visitor.logs_in("root", PASSWORD).await.is(200);
    assert!(
        started.elapsed().as_millis() >= 250,
        "after four failures there is a delay"
    );
    gateway.browser("root").await.me().await.is(200);
}
