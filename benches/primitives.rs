//! Micro-benchmarks of what every request costs: verifying a token, counting in a sliding window.
#![allow(
    missing_docs,
    reason = "criterion's macros make functions without documentation"
)]
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on has failed"
)]

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use switchboard::clock::Clock;
use switchboard::config::{self, Flags};
use switchboard::domain::account::Role;
use switchboard::gateway;
use switchboard::limits::SlidingWindow;
use switchboard::store;

fn verify(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let flags = Flags {
        data_dir: Some(dir.path().join("data")),
        ..Flags::default()
    };
    let config = config::load(&flags, Vec::new()).unwrap().config;
    let (auth, token) = runtime.block_on(async {
        let store = store::open(&config.data).await.unwrap();
        let auth = gateway::open_auth(&config, store, &Clock::system())
            .await
            .unwrap();
        let by = auth.operator();
        let user = auth
            .create_user("mia".parse().unwrap(), Role::Member, None, by)
            .await
            .unwrap();
        let life = jiff::SignedDuration::from_hours(1);
        let token = auth.create_token(&user, life).await.unwrap().token;
        (auth, token)
    });
    criterion.bench_function("verify a token (goal: at most 60 µs)", |bencher| {
        bencher.iter(|| auth.verify(black_box(&token)).unwrap());
    });
}

fn window(criterion: &mut Criterion) {
    let minute = Duration::from_mins(1);
    let keys = NonZeroU32::new(100_000).unwrap();
    let limit = NonZeroU32::new(100).unwrap();
    let crowd = SlidingWindow::new(limit, minute, keys, Clock::system());
    for key in 0..50_000_u64 {
        crowd.admit(&key).unwrap();
    }
    let mut key = 0;
    criterion.bench_function("ask a window, 50 000 keys known", |bencher| {
        bencher.iter(|| {
            key = (key + 7919) % 50_000;
            crowd.admit(black_box(&key)).is_ok()
        });
    });
    let full = SlidingWindow::new(limit, minute, keys, Clock::system());
    while full.admit(&0_u64).is_ok() {}
    criterion.bench_function("be refused by a full window", |bencher| {
        bencher.iter(|| full.admit(black_box(&0_u64)).is_err());
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3)).without_plots();
    targets = verify, window
}
criterion_main!(benches);
