//! Signing keys: created once, rotated, dropped.

use switchboard::domain::audit::Action;
use switchboard::domain::id::KeyId;
use switchboard::store::{OldKeys, StoredKey, Subject};

use crate::{World, at, entry};

crate::on_both_databases!(
    of_two_first_keys_one_is_kept,
    a_rotated_key_verifies_until_its_last_token_ends,
    a_stolen_key_is_dropped_at_once,
);

fn key(seconds: i64) -> StoredKey {
    StoredKey {
        id: KeyId::new(),
        private_key: vec![1, 2, 3],
        public_key: vec![4, 5],
        created_at: at(seconds),
        retired_at: None,
        expires_at: None,
    }
}

async fn of_two_first_keys_one_is_kept(world: World) {
    let (first, second) = (world.second().await, world.second().await);
    let (one, two) = (key(0), key(0));
    let made = entry(Action::KeyRotated, 0);
    let (a, b) = tokio::join!(
        first.add_first_key(&one, &made),
        second.add_first_key(&two, &made)
    );
    a.unwrap();
    b.unwrap();
    let kept = world.store.keys(at(1)).await.unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(
        (
            kept[0].private_key.as_slice(),
            kept[0].public_key.as_slice()
        ),
        (&[1, 2, 3][..], &[4, 5][..])
    );
}

async fn a_rotated_key_verifies_until_its_last_token_ends(world: World) {
    let (old, new) = (key(0), key(10));
    world
        .store
        .add_first_key(&old, &entry(Action::KeyRotated, 0))
        .await
        .unwrap();
    world
        .store
        .rotate_key(&new, OldKeys::Verify, &entry(Action::KeyRotated, 10))
        .await
        .unwrap();
    let keys = world.store.keys(at(11)).await.unwrap();
    assert_eq!(
        keys.iter().map(|key| key.id).collect::<Vec<_>>(),
        [new.id, old.id]
    );
    assert_eq!(
        (keys[0].retired_at, keys[1].retired_at),
        (None, Some(at(10)))
    );
    let end = keys[1].expires_at.unwrap();
    assert!(
        world
            .store
            .keys(end)
            .await
            .unwrap()
            .iter()
            .all(|key| key.id == new.id)
    );
    let changes = world.store.changes_after(0).await.unwrap();
    assert_eq!(changes.last().unwrap().subject, Subject::Keys);
    assert_eq!(world.last_audit_action().await, "key.rotated");
}

async fn a_stolen_key_is_dropped_at_once(world: World) {
    let (older, stolen, new) = (key(0), key(5), key(10));
    let store = &world.store;
    let rotated = entry(Action::KeyRotated, 5);
    store.add_first_key(&older, &rotated).await.unwrap();
    store
        .rotate_key(&stolen, OldKeys::Verify, &rotated)
        .await
        .unwrap();
    let later = entry(Action::KeyRotated, 10);
    store.rotate_key(&new, OldKeys::Drop, &later).await.unwrap();
    let left = store.keys(at(10)).await.unwrap();
    assert_eq!(left.iter().map(|key| key.id).collect::<Vec<_>>(), [new.id]);
}
