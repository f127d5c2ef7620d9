//! Database identity: restored and moved databases get new epochs.

use std::collections::HashSet;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};
use switchboard::domain::account::Role;
use switchboard::domain::id::AttachmentId;
use switchboard::store::{self, AttachmentRow, Blobs, Quotas};

use crate::journals::new_session;
use crate::{World, at};

crate::on_both_databases!(
    only_a_serving_gateway_renews_epochs,
    epochs_of_many_journals_are_renewed_once,
    an_identity_lasts_until_epochs_are_renewed,
    a_refused_upload_deletes_nothing_of_another_database,
);

impl World {
    async fn execute(&self, statement: &str) {
        let statement = AssertSqlSafe(statement.to_owned());
        if let Some(url) = &self.config.database_url {
            let mut connection = PgConnection::connect(url.expose()).await.unwrap();
            sqlx::query(statement)
                .execute(&mut connection)
                .await
                .unwrap();
        } else {
            let path = self.config.sqlite_path().display().to_string();
            let mut connection = SqliteConnection::connect(&path).await.unwrap();
            sqlx::query(statement)
                .execute(&mut connection)
                .await
                .unwrap();
        }
    }

    /// As if a gateway had served from it elsewhere.
    async fn record_other_fingerprint(&self) {
        self.execute("update store_home set home = 'elsewhere'")
            .await;
    }
}

async fn only_a_serving_gateway_renews_epochs(world: World) {
    let owner = world.user("mia", Role::Member).await;
    let new = new_session(owner);
    world.store.create_session(&new).await.unwrap();
    let epoch = async || {
        let row = world.store.session(new.id).await.unwrap();
        row.unwrap().epoch
    };
    world.record_other_fingerprint().await;
    for _ in 0..2 {
        let command = store::open(&world.config).await.unwrap();
        assert_eq!(command.identity().await.unwrap(), None);
        assert_eq!(epoch().await, new.epoch);
    }
    let old = world.store.claim_journal(new.id, "node").await.unwrap();
    let serving = store::open_to_serve(&world.config).await.unwrap();
    let renewed = epoch().await;
    assert_ne!(renewed, new.epoch);
    assert!(serving.identity().await.unwrap().is_some());
    let append = crate::journals::append(new.id, old.term, 0, &["late"]);
    let outcomes = world.store.append(&[append], at(1)).await.unwrap();
    assert!(outcomes[0].is_err(), "the former writer is fenced");
    serving.close().await;
    drop(store::open_to_serve(&world.config).await.unwrap());
    assert_eq!(epoch().await, renewed, "once");
}

async fn epochs_of_many_journals_are_renewed_once(world: World) {
    let owner = world.user("mia", Role::Member).await;
    let mut sessions = Vec::new();
    for _ in 0..2_100 {
        let new = new_session(owner);
        world.store.create_session(&new).await.unwrap();
        sessions.push(new.id);
    }
    world.record_other_fingerprint().await;
    // One gateway after the other: two cannot serve at once.
    let first = store::open_to_serve(&world.config).await.unwrap();
    first.close().await;
    let store = store::open_to_serve(&world.config).await.unwrap();
    let mut epochs = HashSet::new();
    for session in sessions {
        epochs.insert(store.session(session).await.unwrap().unwrap().epoch);
        let lease = store.claim_journal(session, "node").await.unwrap();
        assert_eq!(lease.term, 2, "one for the new epoch, one for the claim");
    }
    assert_eq!(epochs.len(), 1);
}

async fn an_identity_lasts_until_epochs_are_renewed(world: World) {
    let identity = async || world.store.identity().await.unwrap().unwrap();
    let first = identity().await;
    let serving = store::open_to_serve(&world.config).await.unwrap();
    assert_eq!(serving.identity().await.unwrap(), Some(first));
    assert_eq!(identity().await, first);
    world.record_other_fingerprint().await;
    world.store.renew_epochs().await.unwrap();
    assert_ne!(identity().await, first);
}

async fn a_refused_upload_deletes_nothing_of_another_database(world: World) {
    let owner = world.user("mia", Role::Member).await;
    let new = new_session(owner);
    world.store.create_session(&new).await.unwrap();
    let contents = Blobs::open(&world.config.dir).unwrap();
    for is_ours in [false, true] {
        if is_ours {
            let store = world.store.as_ref();
            assert!(store::adopt(&world.config.dir, store).await.unwrap());
        }
        let mut arriving = contents.receive().await.unwrap();
        arriving.write("the same".into()).await.unwrap();
        let content = arriving.finish().await.unwrap();
        let row = AttachmentRow {
            id: AttachmentId::new(),
            session: new.id,
            owner,
            hash: content.hash,
            name: "a".into(),
            media_type: "text/plain".into(),
            size_bytes: content.size_bytes,
            created_at: at(1),
        };
        let none = Quotas {
            session_files: 0,
            session_bytes: 0,
            user_bytes: 0,
        };
        let kept = contents.store(content, &row, none, world.store.as_ref());
        assert!(kept.await.is_err());
        let left = contents.read(&row.hash).await.unwrap();
        assert_eq!(left.is_none(), is_ours);
    }
}
