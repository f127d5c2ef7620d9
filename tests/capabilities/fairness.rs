//! Fairness: what one user does leaves the others their share.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::actors::{Gateway, HttpClient, Settings};

/// Requests that another user makes meanwhile: one in a hundred may be slower than promised.
const REQUESTS: usize = 200;

/// What 99 of 100 requests of another user take at most.
const PROMISED: Duration = Duration::from_millis(300);

/// How many read at once.
const READERS: usize = 250;

/// Reads a long history again and again. A reader whose next page has to wait too long is cut off.
async fn reads_history(reader: HttpClient, path: String) -> usize {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{}{path}", reader.address());
    let token = reader.token.unwrap();
    loop {
        let answer = client.get(&url).bearer_auth(&token).send().await.unwrap();
        let status = answer.status().as_u16();
        assert!([200, 503].contains(&status), "{status}");
        answer.bytes().await.ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_history_reads_holds_up_neither_others_nor_a_revocation() {
    let gateway = Settings::new()
        .with("LIMITS__REQUESTS_PER_MINUTE", "1000000")
        .with("SERVER__MAX_CONNECTIONS_PER_ADDRESS", "1000")
        .start()
        .await;
    for name in ["mia", "ben", "eve"] {
        gateway.adds_user(name, "member");
    }
    let (mia, ben, eve) = (
        gateway.logged_in("mia").await,
        gateway.logged_in("ben").await,
        gateway.logged_in("eve").await,
    );
    let mut long = mia.enters("").await;
    long.prompts("/chunks 300 20000").await;
    long.sees_run_end().await;
    let mut short = ben.enters("").await;
    short.prompts("/stream 50").await;
    short.sees_run_end().await;
    let mut flood = JoinSet::new();
    for _ in 0..READERS {
        let path = format!("/api/sessions/{}/events?limit=1000", long.session());
        flood.spawn(reads_history(mia.clone(), path));
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut times = Vec::new();
    let own = format!("/api/sessions/{}/events", short.session());
    for number in 0..REQUESTS {
        let path = if number % 2 == 0 {
            "/api/sessions"
        } else {
            &own
        };
        let asked = Instant::now();
        ben.gets(path).await.is(200);
        times.push(asked.elapsed());
    }
    let revoked = disables(&gateway, &eve).await;
    assert!(flood.try_join_next().is_none(), "the flood goes on");
    times.sort();
    let (median, p99) = (times[REQUESTS / 2], times[REQUESTS * 99 / 100 - 1]);
    println!("median {median:?}, p99 {p99:?}, revocation {revoked:?}");
    assert!(p99 <= PROMISED, "{times:?}");
    assert!(revoked <= Duration::from_secs(1), "{revoked:?}");
}

/// Disables a user in another process. Returns how long after that the token was still good.
async fn disables(gateway: &Gateway, user: &HttpClient) -> Duration {
    gateway.prints(&["user", "disable", "eve"]);
    let disabled = Instant::now();
    user.sees_within_a_second("/api/auth/me", 401).await;
    disabled.elapsed()
}
