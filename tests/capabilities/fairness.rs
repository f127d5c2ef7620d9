//! Fairness: what one user does leaves the others their share.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::actors::{Gateway, HttpClient, Settings};

/// Requests that another user makes meanwhile.
const REQUESTS: usize = 60;

/// How many read at once.
const READERS: usize = 250;

/// Reads a long history again and again.
async fn reads_history(reader: HttpClient, path: String) -> usize {
    loop {
        let answer = reader.gets(&path).await;
        assert!([200, 503].contains(&answer.status), "{}", answer.text);
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
    let disabled = Instant::now();
    disables(&gateway, &eve).await;
    let revoked = disabled.elapsed();
    assert!(flood.try_join_next().is_none(), "the flood goes on");
    times.sort();
    let (median, worst) = (times[REQUESTS / 2], times[REQUESTS - 1]);
    println!("median {median:?}, worst {worst:?}, revocation {revoked:?}");
    // An unoptimised gateway, beside the clients of the flood.
    assert!(worst < Duration::from_secs(1), "{times:?}");
}

/// Disables a user in another process; the token ends within a second after that.
async fn disables(gateway: &Gateway, user: &HttpClient) {
    gateway.prints(&["user", "disable", "eve"]);
    user.sees_within_a_second("/api/auth/me", 401).await;
}
