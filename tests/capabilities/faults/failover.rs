//! Failover: Postgres is lost, and a standby without its last commits takes over.

use super::postgres_server::PostgresServer;
use crate::actors::{Settings, Storage, WsClient};
use crate::postgres::connect;

async fn epochs(server: &PostgresServer) -> Vec<String> {
    let mut connection = connect(&server.url()).await;
    sqlx::query_scalar("select distinct epoch from sessions")
        .fetch_all(&mut connection)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failover_the_gateway_exits_and_journals_get_new_epochs() {
    let mut server = PostgresServer::start().await;
    let mut gateway = Settings::new()
        .with_storage(Storage::Postgres(server.url()))
        .start()
        .await;
    let page = gateway.logged_in("root").await;
    let token = page.token.clone().unwrap();
    let mut member = WsClient::connects(gateway.address(), &token, "").await;
    member.prompts("/echo both know this").await;
    member.sees_run_end().await;
    let standby = server.creates_standby();
    member
        .prompts("/echo only the lost server knows this")
        .await;
    member.sees_run_end().await;
    let before = epochs(&server).await;

    server.fails_over_to(standby).await;
    assert_eq!(gateway.exit_code(), Some(1), "{}", gateway.log());
    let log = gateway.log();
    assert!(log.contains("did a standby take over?"), "{log}");

    // A command only reads; new epochs are the gateway's job.
    let listed = gateway.runs(&["user", "list"]);
    let shown = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(listed.status.success(), "{shown}");
    assert!(shown.contains("a standby took over"), "{shown}");
    assert_eq!(epochs(&server).await, before);

    for resume in ["snapshot", "replayed"] {
        gateway.restart();
        let back = WsClient::connects(gateway.address(), &token, &member.position()).await;
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
