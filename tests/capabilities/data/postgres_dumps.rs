//! Postgres dumps: backup and restore by Postgres' own tools.

use std::process::Command;

use super::{contains_events, journal, streams};
use crate::actors::{Settings, Storage, WsClient};
use crate::postgres::{Database, bin_dir};

pub(super) fn runs(program: &str, arguments: &[&str]) {
    let ran = Command::new(bin_dir().join(program))
        .args(arguments)
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{program}: {shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_under_load_restores_completely_and_journals_get_a_new_epoch() {
    let (old, new) = (Database::create().await, Database::create().await);
    let mut gateway = Settings::new()
        .with_storage(Storage::Postgres(old.url.clone()))
        .start()
        .await;
    let token = gateway.logged_in("root").await.token.unwrap();
    let mut members = streams(&gateway, &token, 2, "/stream 5000 2").await;
    let seen: Vec<_> = members.iter().map(|member| member.events.clone()).collect();
    let dir = tempfile::tempdir().unwrap();
    let dump = dir.path().join("dump");
    let dump = dump.to_str().unwrap();
    tokio::task::block_in_place(|| {
        runs("pg_dump", &["--format=custom", "--file", dump, &old.url]);
    });
    for member in &mut members {
        let more = member.events.len() + 100;
        while member.events.len() < more {
            member.receives().await.unwrap();
        }
    }
    gateway.kill();

    // Into a new database and over the old one: each is detected once.
    runs("pg_restore", &["--no-owner", "--dbname", &new.url, dump]);
    let clean = [
        "--clean",
        "--if-exists",
        "--no-owner",
        "--dbname",
        &old.url,
        dump,
    ];
    runs("pg_restore", &clean);
    for url in [&new.url, &old.url] {
        gateway.set("DATA__DATABASE_URL", Some(url));
        let mut positions: Vec<String> = members.iter().map(WsClient::position).collect();
        for resume in ["snapshot", "replayed"] {
            gateway.restart();
            for (position, member) in positions.iter_mut().zip(&members) {
                let mut back = WsClient::connects(gateway.address(), &token, position).await;
                assert_eq!(back.ack["resume"], resume, "{position}");
                assert_ne!(back.ack["epoch"], member.ack["epoch"]);
                if resume == "snapshot" {
                    assert_eq!(back.receives().await.unwrap()["type"], "FULL_STATE");
                }
                *position = back.position_after(1);
            }
        }
        let page = gateway.logged_in("root").await;
        for (member, seen) in members.iter().zip(&seen) {
            contains_events(&journal(&page, &member.session()).await, seen);
        }
    }
    // A restore that cannot be detected is documented in the output.
    let back = WsClient::connects(gateway.address(), &token, &members[0].position()).await;
    let shown = gateway.prints(&["migrate", "--new-epochs"]);
    assert!(shown.contains("2 journals have a new epoch"), "{shown}");
    gateway.restart();
    let again = WsClient::connects(gateway.address(), &token, &back.position_after(1)).await;
    assert_eq!(again.ack["resume"], "snapshot");
}

#[tokio::test]
async fn an_unprivileged_postgres_role_can_identify_its_database() {
    let database = Database::create().await;
    let mut admin = crate::postgres::connect(&database.url).await;
    let role = format!("role_{}", uuid::Uuid::now_v7().simple());
    let (server, name) = database.url.rsplit_once('/').unwrap();
    for statement in [
        format!("create role {role} login"),
        format!("alter database {name} owner to {role}"),
        format!("grant all on schema public to {role}"),
    ] {
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .execute(&mut admin)
            .await
            .unwrap();
    }
    let own = format!(
        "{}/{name}",
        server.replace("postgres@", &format!("{role}@"))
    );
    let gateway = Settings::new()
        .with_storage(Storage::Postgres(own))
        .start()
        .await;
    drop(gateway);
    let home: String = sqlx::query_scalar("select home from store_home")
        .fetch_one(&mut admin)
        .await
        .unwrap();
    assert_eq!(home.split('/').count(), 4, "{home}");
}
