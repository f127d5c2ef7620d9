//! A Postgres that is lost, and a standby without its last commits that takes over.

use super::server::Server;
use crate::actors::{Member, Settings, Storage};
use crate::postgres::connect;

async fn epochs(server: &Server) -> Vec<String> {
    let mut connection = connect(&server.url()).await;
    sqlx::query_scalar("select distinct epoch from sessions")
        .fetch_all(&mut connection)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_whose_standby_took_over_ends_and_begins_the_journals_anew() {
    let mut server = Server::start().await;
    let mut gateway = Settings::new()
        .storing(Storage::Postgres(server.url()))
        .start()
        .await;
    let page = gateway.browser("root").await;
    let token = page.token.clone().unwrap();
    let mut member = Member::joins(gateway.address(), &token, "").await;
    member.prompts("/echo both know this").await;
    member.sees_run_end().await;
    let standby = server.copies_itself();
    member
        .prompts("/echo only the lost server knows this")
        .await;
    member.sees_run_end().await;
    let before = epochs(&server).await;

    server.fails_over_to(standby).await;
    assert_eq!(gateway.exit_code(), Some(1), "{}", gateway.log());
    let log = gateway.log();
    assert!(log.contains("did a standby take over?"), "{log}");

    // A command looks, and leaves it to the gateway.
    let listed = gateway.runs(&["user", "list"]);
    let told = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(listed.status.success(), "{told}");
    assert!(told.contains("a standby took over"), "{told}");
    assert_eq!(epochs(&server).await, before);

    for resume in ["snapshot", "replayed"] {
        gateway.restart();
        let back = Member::joins(gateway.address(), &token, &member.position()).await;
        assert_eq!(back.ack["resume"], resume, "new epochs are given once");
        assert_eq!(
            gateway.log().contains("a standby took over"),
            resume == "snapshot"
        );
        member = back;
    }
    assert_ne!(epochs(&server).await, before);
    member.prompts("/echo afterwards").await;
    member.sees_run_end().await;
    let listed = gateway.runs(&["user", "list"]);
    assert_eq!(String::from_utf8_lossy(&listed.stderr), "");
}
