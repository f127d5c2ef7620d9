//! Attachments: stored, counted against quotas, deleted with their session and user.

use switchboard::domain::account::Role;
use switchboard::domain::audit::Action;
use switchboard::domain::id::{AttachmentId, Epoch, SessionId, UserId};
use switchboard::store::{AddError, AttachmentRow, NewSession, Quotas};

use crate::{World, at, entry};

const QUOTAS: Quotas = Quotas {
    session_files: 10,
    session_bytes: 1_000,
    user_bytes: 1_500,
};

async fn session(world: &World, owner: UserId) -> SessionId {
    let new = NewSession {
        id: SessionId::new(),
        owner,
        agent: "demo".into(),
        title: None,
        epoch: Epoch::new(),
        created_at: at(1),
    };
    world.store.create_session(&new).await.unwrap();
    new.id
}

fn file(session: SessionId, owner: UserId, content: u8, size_bytes: u64) -> AttachmentRow {
    AttachmentRow {
        id: AttachmentId::new(),
        session,
        owner,
        hash: [content; 32],
        name: "a file".into(),
        media_type: "text/plain".into(),
        size_bytes,
        created_at: at(1),
    }
}

async fn files_are_found_again(world: World) {
    let owner = world.user("ann", Role::Member).await;
    let (one, other) = (session(&world, owner).await, session(&world, owner).await);
    let (first, second) = (file(one, owner, 0xff, 1), file(one, owner, 0, 2));
    for row in [&first, &second, &file(other, owner, 0xff, 3)] {
        world.store.add_attachment(row, QUOTAS).await.unwrap();
    }
    let found = world.store.attachments(one).await.unwrap();
    assert_eq!(found, [first, second]);
    let with = async |first| world.store.referenced_hashes(first).await.unwrap();
    assert_eq!(with(0xff).await, [[0xff; 32]]);
    assert_eq!(with(0).await, [[0; 32]]);
    assert_eq!(with(1).await, [[0; 32]; 0]);
}

async fn concurrent_uploads_cannot_exceed_a_quota(world: World) {
    let owner = world.user("ann", Role::Member).await;
    let sessions = [session(&world, owner).await, session(&world, owner).await];
    let rows: Vec<AttachmentRow> = (0..20)
        .map(|number| file(sessions[usize::from(number) % 2], owner, number, 200))
        .collect();
    let adding = rows
        .iter()
        .map(|row| world.store.add_attachment(row, QUOTAS));
    let outcomes = futures_util::future::join_all(adding).await;
    let added = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(added, 7, "1 400 of 1 500 bytes");
    for outcome in outcomes {
        match outcome {
            Ok(()) => {}
            Err(AddError::OverQuota { max, actual, .. }) => assert!(actual > max),
            Err(error) => panic!("{error}"),
        }
    }
    let few = Quotas {
        session_files: 0,
        ..QUOTAS
    };
    let one_more = file(sessions[0], owner, 99, 0);
    match world.store.add_attachment(&one_more, few).await {
        Err(AddError::OverQuota { limit, .. }) => assert_eq!(limit, "sessionAttachments"),
        other => panic!("{other:?}"),
    }
}

async fn an_upload_over_quota_is_refused_in_advance(world: World) {
    let owner = world.user("ann", Role::Member).await;
    let (one, other) = (session(&world, owner).await, session(&world, owner).await);
    for (session, content, size) in [(one, 1, 900), (other, 2, 500)] {
        let row = file(session, owner, content, size);
        world.store.add_attachment(&row, QUOTAS).await.unwrap();
    }
    let check = async |session, size, quotas| {
        let checked = world.store.check_quotas(session, owner, size, quotas).await;
        match checked {
            Ok(()) => "",
            Err(AddError::OverQuota { limit, .. }) => limit,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(check(one, 100, QUOTAS).await, "");
    assert_eq!(check(one, 101, QUOTAS).await, "sessionAttachmentBytes");
    assert_eq!(check(other, 101, QUOTAS).await, "userAttachmentBytes");
    let few = Quotas {
        session_files: 1,
        ..QUOTAS
    };
    assert_eq!(check(one, 0, few).await, "sessionAttachments");
}

async fn files_are_deleted_with_their_session_and_their_user(world: World) {
    let (ann, ben) = (
        world.user("ann", Role::Member).await,
        world.user("ben", Role::Member).await,
    );
    let (hers, his) = (session(&world, ann).await, session(&world, ben).await);
    for row in [file(hers, ann, 1, 1), file(his, ben, 2, 1)] {
        world.store.add_attachment(&row, QUOTAS).await.unwrap();
    }
    let ended = entry(Action::SessionEnded, 2);
    assert!(world.store.end_session(hers, ann, &ended).await.unwrap());
    assert_eq!(world.store.attachments(hers).await.unwrap(), []);
    let late = world
        .store
        .add_attachment(&file(hers, ann, 1, 1), QUOTAS)
        .await;
    assert!(matches!(late, Err(AddError::NoSession)), "{late:?}");
    let removed = entry(Action::UserRemoved, 2);
    world.store.remove_user(ben, &removed).await.unwrap();
    for first in [1, 2] {
        let needed = world.store.referenced_hashes(first).await.unwrap();
        assert_eq!(needed, [[0; 32]; 0]);
    }
}

crate::on_both_databases!(
    files_are_found_again,
    concurrent_uploads_cannot_exceed_a_quota,
    an_upload_over_quota_is_refused_in_advance,
    files_are_deleted_with_their_session_and_their_user,
);
