//! Limits: each checked exactly at its boundary.

use serde_json::{Value, json};

use crate::actors::{Gateway, HttpClient, PASSWORD, Settings};

fn wrong() -> Value {
    json!({ "username": "nobody", "password": "wrong password" })
}

#[tokio::test]
async fn the_fifth_login_in_a_minute_passes_and_the_sixth_does_not() {
    let gateway = Settings::new()
        .with("LIMITS__LOGINS_PER_MINUTE", "5")
        .start()
        .await;
    let mut root = gateway.anonymous();
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
    gateway.anonymous().gets("/healthz").await.is(200);
}

#[tokio::test]
async fn a_refused_login_is_logged_with_its_address_and_the_setting_to_raise() {
    let gateway = Settings::new()
        .with("LIMITS__LOGINS_PER_MINUTE", "1")
        .start()
        .await;
    let mut root = gateway.anonymous();
    root.logs_in("root", PASSWORD).await.is(200);
    assert!(!gateway.log().contains("limits.logins_per_minute"));
    for _ in 0..3 {
        let refused = root.logs_in("root", PASSWORD).await;
        refused.refuses(429, "RATE_LIMITED");
    }
    let log = gateway.log();
    let said = log
        .lines()
        .filter(|line| line.contains("raise limits.logins_per_minute"));
    let said: Vec<&str> = said.collect();
    assert_eq!(said.len(), 1, "once a minute: {log}");
    assert!(said[0].contains("127.0.0.1"), "{}", said[0]);
}

#[tokio::test]
async fn a_malformed_login_counts_as_an_attempt() {
    let gateway = Settings::new()
        .with("LIMITS__LOGINS_PER_MINUTE", "5")
        .start()
        .await;
    let visitor = gateway.anonymous();
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
async fn requests_per_address_are_limited() {
    let gateway = Settings::new()
        .with("LIMITS__REQUESTS_PER_MINUTE", "1")
        .with("LIMITS__REQUEST_BURST", "10")
        .with("LIMITS__EXEMPT_ADDRESSES", "[]")
        .start()
        .await;
    let visitor = gateway.anonymous();
    for _ in 0..10 {
        visitor.gets("/version").await.is(200);
    }
    let refused = visitor.gets("/version").await.refuses(429, "RATE_LIMITED");
    assert!(!refused.header("retry-after").is_empty());
}

#[tokio::test]
async fn connections_per_address_are_limited() {
    let gateway = Settings::new()
        .with("SERVER__MAX_CONNECTIONS_PER_ADDRESS", "3")
        .with("LIMITS__EXEMPT_ADDRESSES", "[]")
        .start()
        .await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut tcp = gateway.raw_tcp().await;
        tcp.writes(&format!(
            "GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n",
            gateway.address()
        ))
        .await;
        assert!(tcp.reads_some().await.starts_with("HTTP/1.1 200"));
        held.push(tcp);
    }
    let (nothing, _) = gateway.raw_tcp().await.reads_to_end().await;
    assert_eq!(nothing, "");
    drop(held);
    let visitor = gateway.anonymous();
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
async fn clients_behind_a_trusted_proxy_are_limited_separately() {
    let gateway = Settings::new()
        .with("LIMITS__LOGINS_PER_MINUTE", "2")
        .with("SERVER__TRUSTED_PROXIES", "127.0.0.1")
        .start()
        .await;
    let attempt = async |browser: HttpClient, status: u16| {
        browser.posts("/api/auth/login", wrong()).await.is(status);
    };
    for _ in 0..2 {
        attempt(gateway.anonymous().through_proxy("203.0.113.7"), 401).await;
    }
    attempt(gateway.anonymous().through_proxy("203.0.113.7"), 429).await;
    attempt(gateway.anonymous().through_proxy("203.0.113.8"), 401).await;
    attempt(
        gateway
            .anonymous()
            .through_proxy("198.51.100.1, 203.0.113.7"),
        429,
    )
    .await;
    // One household has many IPv6 addresses: a /64 counts as one.
    attempt(gateway.anonymous().through_proxy("2001:db8::1"), 401).await;
    attempt(gateway.anonymous().through_proxy("2001:db8::2"), 401).await;
    attempt(gateway.anonymous().through_proxy("2001:db8::3"), 429).await;
    attempt(gateway.anonymous().through_proxy("2001:db8:0:1::1"), 401).await;
}

#[tokio::test]
async fn an_untrusted_peer_cannot_spoof_its_address() {
    let gateway = Settings::new()
        .with("LIMITS__LOGINS_PER_MINUTE", "5")
        .start()
        .await;
    for number in 0..5 {
        let liar = gateway
            .anonymous()
            .through_proxy(&format!("203.0.113.{number}"));
        liar.posts("/api/auth/login", wrong()).await.is(401);
    }
    let liar = gateway.anonymous().through_proxy("203.0.113.99");
    liar.posts("/api/auth/login", wrong())
        .await
        .refuses(429, "RATE_LIMITED");
}

/// Many addresses try many names at once: the hashing queue refuses instead of growing, the limiter's
/// map stays bounded, and other users are served as fast as before.
#[tokio::test]
async fn a_login_flood_leaves_the_gateway_fast_and_its_memory_small() {
    let gateway = Settings::new()
        .with("SERVER__TRUSTED_PROXIES", "127.0.0.1")
        .with("LIMITS__TRACKED_ADDRESSES", "100")
        .start()
        .await;
    let root = gateway.logged_in("root").await;
    let before = resident(&root).await;
    let mut flood = tokio::task::JoinSet::new();
    for number in 0..400 {
        let address = format!("203.0.{}.{}", 100 + number / 250, number % 250);
        let browser = gateway.anonymous().through_proxy(&address);
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

async fn resident(root: &HttpClient) -> u64 {
    metric(
        &root.gets("/metrics").await.is(200).text,
        "process_resident_memory_bytes",
    )
}

#[tokio::test]
async fn failed_logins_slow_down_an_account_and_a_success_resets_it() {
    let gateway = Gateway::start().await;
    let mut visitor = gateway.anonymous();
    for _ in 0..4 {
        visitor.logs_in("root", "wrong password").await.is(401);
    }
    let started = std::time::Instant::now();
    visitor.logs_in("root", PASSWORD).await.is(200);
    assert!(
        started.elapsed().as_millis() >= 250,
        "after four failures there is a delay"
    );
    gateway.logged_in("root").await.me().await.is(200);
}

#[tokio::test]
async fn guesses_from_many_networks_are_bounded_and_the_owner_is_not_locked_out() {
    let gateway = Settings::new()
        .with("SERVER__TRUSTED_PROXIES", "127.0.0.1")
        .start()
        .await;
    gateway.adds_user("mia", "member");
    let mut owner = gateway.anonymous();
    let answer = owner.logs_in("mia", PASSWORD).await.is(200);
    let device = answer.headers.get_all("set-cookie").iter().nth(1).unwrap();
    let device = device.to_str().unwrap().split(';').next().unwrap();
    owner.cookie = Some(device.to_owned());
    let guesses = async |number: u32| {
        let mut stranger = gateway.anonymous();
        let address = format!("2001:db8:{number:x}::1");
        stranger.headers.push(("x-forwarded-for", address));
        stranger.logs_in("mia", "wrong password").await.status
    };
    for number in 0..8 {
        assert_eq!(guesses(number).await, 401);
    }
    let started = std::time::Instant::now();
    let many = futures_util::future::join_all((100..130).map(guesses));
    let logs_in = async {
        // The strangers' attempts are under way.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        owner.logs_in("mia", PASSWORD).await.is(200);
        started.elapsed()
    };
    let (statuses, owned) = tokio::join!(many, logs_in);
    let checked = statuses.iter().filter(|status| **status == 401).count();
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert_eq!((checked, refused), (2, 28), "{statuses:?}");
    assert!(owned < std::time::Duration::from_secs(2), "{owned:?}");
}

#[tokio::test]
async fn guesses_from_one_large_network_are_limited_as_a_whole() {
    let gateway = Settings::new()
        .with("SERVER__TRUSTED_PROXIES", "127.0.0.1")
        .with("LIMITS__LOGINS_PER_MINUTE", "5")
        .start()
        .await;
    let tries = async |network: u32, name: u32| {
        let mut stranger = gateway.anonymous();
        let address = format!("2001:db8:0:{network:x}::1");
        stranger.headers.push(("x-forwarded-for", address));
        stranger
            .logs_in(&format!("nobody{name}"), "wrong password")
            .await
            .status
    };
    for name in 0..20 {
        assert_eq!(tries(name, name).await, 401, "{name}");
    }
    assert_eq!(tries(21, 21).await, 429, "the /56 is used up");
    assert_eq!(tries(0x100, 22).await, 401, "another /56 is not");
}

fn password_change(current: &str) -> Value {
    json!({ "currentPassword": current, "newPassword": "another horse battery" })
}

#[tokio::test]
async fn guesses_at_the_current_password_are_bounded_and_the_owner_can_still_change_it() {
    let gateway = Settings::new()
        .with("SERVER__TRUSTED_PROXIES", "127.0.0.1")
        .start()
        .await;
    gateway.adds_user("mia", "member");
    let mut owner = gateway.anonymous();
    let answer = owner.logs_in("mia", PASSWORD).await.is(200);
    let device = answer.headers.get_all("set-cookie").iter().nth(1).unwrap();
    let device = device.to_str().unwrap().split(';').next().unwrap();
    owner.cookie = Some(device.to_owned());
    let stolen = owner.token.clone();
    let guesses = async |number: u32| {
        let mut thief = gateway.anonymous();
        thief.token.clone_from(&stolen);
        let address = format!("2001:db8:{number:x}::1");
        thief.headers.push(("x-forwarded-for", address));
        let guess = password_change("wrong password");
        thief.posts("/api/auth/password", guess).await.status
    };
    for number in 0..8 {
        assert_eq!(guesses(number).await, 403);
    }
    let started = std::time::Instant::now();
    let many = futures_util::future::join_all((100..130).map(guesses));
    let changes = async {
        // The thief's attempts are under way.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let change = password_change(PASSWORD);
        owner.posts("/api/auth/password", change).await.is(204);
        started.elapsed()
    };
    let (statuses, changed) = tokio::join!(many, changes);
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert_eq!(refused, 28, "{statuses:?}");
    assert!(changed < std::time::Duration::from_secs(2), "{changed:?}");
}

#[tokio::test]
async fn password_changes_from_one_large_network_are_limited_as_a_whole() {
    let gateway = Settings::new()
        .with("SERVER__TRUSTED_PROXIES", "127.0.0.1")
        .with("LIMITS__LOGINS_PER_MINUTE", "5")
        .start()
        .await;
    let tries = async |network: u32| {
        let mut stranger = gateway.anonymous();
        let address = format!("2001:db8:0:{network:x}::1");
        stranger.headers.push(("x-forwarded-for", address));
        let change = password_change("wrong password");
        stranger.posts("/api/auth/password", change).await.status
    };
    for network in 0..20 {
        assert_eq!(tries(network).await, 401, "{network}");
    }
    assert_eq!(tries(21).await, 429, "the /56 is used up");
    assert_eq!(tries(0x100).await, 401, "another /56 is not");
}
