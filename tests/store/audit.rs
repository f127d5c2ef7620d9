//! Audit log: filters, pages and expiry; and the overview of all sessions.

use switchboard::domain::account::Role;
use switchboard::domain::audit::{Action, Actor, AuditContext, AuditEntry};
use switchboard::domain::id::{Epoch, SessionId, UserId};
use switchboard::store::{
    AuditFilter, NewSession, SessionChange, SessionFilter, SessionStatus, SessionSummary,
};

use crate::journals::append;
use crate::{World, at, name};

crate::on_both_databases!(
    filters_combine_and_the_newest_comes_first,
    pages_neither_skip_nor_repeat,
    old_rows_are_dropped_in_batches,
    sessions_are_found_by_owner_agent_and_status,
    ended_sessions_are_not_counted,
);

fn entry_by(seconds: i64, actor: &Actor, action: Action, target: &str) -> AuditEntry {
    let context = AuditContext {
        actor: actor.clone(),
        address: None,
        at: at(seconds),
    };
    context.did(action, target)
}

/// Matching entries, newest first.
async fn found(world: &World, filter: AuditFilter) -> Vec<String> {
    let rows = world.store.audit_entries(&filter, 100).await.unwrap();
    rows.into_iter()
        .map(|row| format!("{} {} {}", row.actor, row.action, row.target))
        .collect()
}

async fn filters_combine_and_the_newest_comes_first(world: World) {
    let mia = UserId::new();
    let user = Actor::User(mia, name("mia"));
    for (seconds, actor, action, target) in [
        (1, &user, Action::LoginSucceeded, "x"),
        (2, &Actor::Anonymous("mia".into()), Action::LoginFailed, "x"),
        (3, &Actor::Operator, Action::UserDisabled, "mia"),
        (4, &user, Action::LoggedOut, "y"),
    ] {
        let entry = entry_by(seconds, actor, action, target);
        world.store.record(&entry).await.unwrap();
    }
    let text = |text: &str| Some(text.to_owned());
    let all = found(&world, AuditFilter::default()).await;
    assert_eq!(
        all,
        [
            "mia login.ended y",
            "(operator) user.disabled mia",
            "mia login.failed x",
            "mia login.succeeded x"
        ]
    );
    let logins = AuditFilter {
        action: text("login."),
        ..AuditFilter::default()
    };
    assert_eq!(found(&world, logins.clone()).await.len(), 3);
    let by_name = AuditFilter {
        actor: text("mia"),
        target: text("x"),
        ..logins.clone()
    };
    assert_eq!(found(&world, by_name).await.len(), 2);
    let by_id = AuditFilter {
        actor: Some(mia.to_string()),
        ..logins
    };
    assert_eq!(
        found(&world, by_id).await,
        ["mia login.ended y", "mia login.succeeded x"]
    );
    let between = AuditFilter {
        since: Some(at(2)),
        until: Some(at(4)),
        ..AuditFilter::default()
    };
    assert_eq!(found(&world, between).await, all[1..3]);
    // A name is matched literally, not as a pattern.
    for (action, expected) in [("login", 0), ("login.failed", 1), ("l%", 0), ("_ogin.", 0)] {
        let filter = AuditFilter {
            action: text(action),
            ..AuditFilter::default()
        };
        assert_eq!(found(&world, filter).await.len(), expected, "{action}");
    }
}

async fn pages_neither_skip_nor_repeat(world: World) {
    for number in 0..25 {
        let entry = entry_by(1, &Actor::Operator, Action::NoticeSent, &number.to_string());
        world.store.record(&entry).await.unwrap();
    }
    let mut filter = AuditFilter::default();
    let mut seen = Vec::new();
    loop {
        let page = world.store.audit_entries(&filter, 10).await.unwrap();
        let Some(last) = page.last() else { break };
        filter.before = Some(last.id);
        seen.extend(
            page.into_iter()
                .map(|row| row.target.parse::<i32>().unwrap()),
        );
    }
    assert_eq!(seen, (0..25).rev().collect::<Vec<_>>());
}

async fn old_rows_are_dropped_in_batches(world: World) {
    for seconds in 1..=7 {
        let entry = entry_by(seconds, &Actor::Operator, Action::NoticeSent, "x");
        world.store.record(&entry).await.unwrap();
    }
    assert_eq!(world.store.drop_audit_entries(at(6), 3).await.unwrap(), 3);
    assert_eq!(world.store.drop_audit_entries(at(6), 3).await.unwrap(), 2);
    assert_eq!(world.store.drop_audit_entries(at(6), 3).await.unwrap(), 0);
    let left = world
        .store
        .audit_entries(&AuditFilter::default(), 10)
        .await
        .unwrap();
    let left: Vec<_> = left.iter().map(|row| row.at).collect();
    assert_eq!(left, [at(7), at(6)]);
}

async fn session(world: &World, owner: UserId, agent: &str, seconds: i64) -> SessionId {
    let new = NewSession {
        id: SessionId::new(),
        owner,
        agent: agent.into(),
        title: Some("a secret title".into()),
        epoch: Epoch::new(),
        created_at: at(seconds),
    };
    world.store.create_session(&new).await.unwrap();
    new.id
}

async fn sessions_are_found_by_owner_agent_and_status(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let tom = world.user("tom", Role::Member).await;
    let idle = session(&world, mia, "demo", 1).await;
    let away = session(&world, mia, "toy", 2).await;
    let busy = session(&world, tom, "demo", 3).await;
    let ended = session(&world, tom, "demo", 4).await;
    let archive = SessionChange::Archived(true);
    world
        .store
        .change_session(away, mia, &archive, at(5))
        .await
        .unwrap();
    let entry = entry_by(5, &Actor::Operator, Action::SessionEnded, "x");
    world.store.end_session(ended, tom, &entry).await.unwrap();
    let lease = world.store.claim_journal(busy, "here").await.unwrap();
    let mut started = append(busy, lease.term, 0, &["a"]);
    started.summary = Some(SessionSummary {
        messages: 1,
        last_prompt: Some("a secret prompt".into()),
        running: true,
        ..SessionSummary::default()
    });
    world.store.append(&[started], at(3)).await.unwrap()[0]
        .clone()
        .unwrap();

    let found = async |filter: SessionFilter| {
        let all = world.store.all_sessions(&filter, 10).await.unwrap();
        assert!(!format!("{all:?}").contains("secret"), "{all:?}");
        all.into_iter().map(|facts| facts.id).collect::<Vec<_>>()
    };
    let any = SessionFilter::default;
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(found(any()).await, [busy, away, idle]);
    for user in ["mia", &mia.to_string()] {
        let filter = SessionFilter {
            user: text(user),
            ..any()
        };
        assert_eq!(found(filter).await, [away, idle], "{user}");
    }
    for (status, expected) in [
        (SessionStatus::Running, busy),
        (SessionStatus::Idle, idle),
        (SessionStatus::Archived, away),
    ] {
        let filter = SessionFilter {
            status: Some(status),
            ..any()
        };
        assert_eq!(found(filter).await, [expected], "{status:?}");
    }
    let both = SessionFilter {
        user: text("mia"),
        agent: text("demo"),
        ..any()
    };
    assert_eq!(found(both).await, [idle]);
    let rest = SessionFilter {
        before: Some((at(2), away)),
        ..any()
    };
    assert_eq!(found(rest).await, [idle]);
}

async fn ended_sessions_are_not_counted(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let (_, ended) = (
        session(&world, mia, "demo", 1).await,
        session(&world, mia, "demo", 2).await,
    );
    let entry = entry_by(3, &Actor::Operator, Action::SessionEnded, "x");
    world.store.end_session(ended, mia, &entry).await.unwrap();
    let counts = world.store.counts().await.unwrap();
    assert_eq!((counts.users, counts.sessions, counts.running), (1, 1, 0));
}
