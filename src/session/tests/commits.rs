//! Group commit against a model: many writers at once, each journal as its writer wrote it.

use proptest::prelude::*;
use tokio::task::JoinSet;

use super::*;
use crate::session::journal::Writer;
use crate::session::tail::Tails;

/// Numbers of events per append, per writer.
fn any_work() -> impl Strategy<Value = Vec<Vec<usize>>> {
    prop::collection::vec(prop::collection::vec(1..40_usize, 1..8), 1..12)
}

fn event(number: usize) -> Event {
    Event::TitleChanged {
        title: number.to_string(),
    }
}

/// Checks that every visible head is stored.
async fn watch(journal: Journal, store: Arc<dyn Store>, last: u64) {
    loop {
        let seen = journal.head();
        if seen > 0 {
            let stored = store.events_after(journal.session(), seen - 1, 1).await;
            assert_eq!(
                stored.unwrap()[0].offset,
                seen,
                "visible before it was committed"
            );
        }
        if seen == last {
            return;
        }
        journal.wait_beyond(seen).await;
    }
}

async fn run(work: Vec<Vec<usize>>) {
    let node = Node::new().await;
    let tails = Arc::new(Tails::new(1_000_000));
    let mut tasks = JoinSet::new();
    let mut expected = Vec::new();
    for appends in work {
        let new = node
            .sessions
            .new_session(node.mia.user, None, None)
            .unwrap();
        let (store, permits) = (Arc::clone(&node.store), ReadPermits::default());
        let journal = Journal::new(new.id, new.epoch, 0, store, permits);
        let committer = node.sessions.parts.committer.clone();
        let total: usize = appends.iter().sum();
        expected.push((new.id, total));
        tasks.spawn(watch(
            journal.clone(),
            Arc::clone(&node.store),
            total as u64,
        ));
        let mut writer = Writer::new(
            journal,
            0,
            Some(new),
            (committer, Arc::clone(&tails)),
            Arc::default(),
        );
        let at = node.clock.wall();
        tasks.spawn(async move {
            let mut next = 0;
            for count in appends {
                let events: Vec<Event> = (next..next + count).map(event).collect();
                next += count;
                let entries = writer
                    .record(&events, at, None, None, Vec::new(), None)
                    .await
                    .unwrap();
                assert_eq!(entries.len(), count);
            }
        });
    }
    tasks.join_all().await;
    for (session, total) in expected {
        let stored = node
            .sessions
            .events(&node.mia, session, 0, 10_000)
            .await
            .unwrap();
        let model = (1_u64..).zip((0..total).map(event));
        assert!(
            stored
                .into_iter()
                .map(|entry| (entry.recorded.offset, entry.recorded.event))
                .eq(model),
            "the journal is what its writer wrote"
        );
    }
    node.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn every_journal_is_what_its_writer_wrote(work in any_work()) {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap()
            .block_on(run(work));
    }
}
