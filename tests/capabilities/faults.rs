//! Faults: storage outages, lost replies, vanished peers and mass reconnects.

mod failover;
mod lossy_proxy;
mod one_gateway;
mod postgres_server;
mod small_disk;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use socket2::{SockFilter, SockRef};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tokio::task::JoinSet;

use crate::actors::{Gateway, HttpClient, Settings, Storage, WsClient};
use lossy_proxy::LossyProxy;
use postgres_server::PostgresServer;
use small_disk::SmallDisk;

/// Deadline for the error while storage is unavailable.
const ERROR_DEADLINE: Duration = Duration::from_secs(3);
/// Deadline for recovery after storage is back, or after a connection to it was lost.
const RECOVERY_DEADLINE: Duration = Duration::from_secs(5);
/// Words of the answer that is streaming when storage fails.
const WORDS: usize = 300;

/// A gateway, and clients connected before the outage.
struct OutageTest {
    gateway: Gateway,
    page: HttpClient,
    /// Receives a streaming answer.
    reading: WsClient,
    /// Has completed a run.
    idle: WsClient,
    /// Has sent nothing yet.
    new: WsClient,
}

impl OutageTest {
    async fn start(storage: Storage) -> Self {
        let gateway = Settings::new().with_storage(storage).start().await;
        let page = gateway.logged_in("root").await;
        let token = page.token.clone().unwrap();
        let mut idle = WsClient::connects(gateway.address(), &token, "").await;
        idle.prompts("/echo before").await;
        idle.sees_run_end().await;
        let new = WsClient::connects(gateway.address(), &token, "").await;
        let mut reading = WsClient::connects(gateway.address(), &token, "").await;
        reading.prompts(&format!("/stream {WORDS} 10")).await;
        while reading.events.len() < 20 {
            reading.receives().await.unwrap();
        }
        Self {
            gateway,
            page,
            reading,
            idle,
            new,
        }
    }

    /// During the outage commands get an error soon, no unstored event is sent, and connections stay
    /// open.
    async fn checks_outage(&mut self) {
        tokio::join!(
            is_refused(&mut self.reading, &["STORAGE_UNAVAILABLE", "BUSY"]),
            is_refused(&mut self.idle, &["STORAGE_UNAVAILABLE"]),
            is_refused(&mut self.new, &["STORAGE_UNAVAILABLE"]),
            login_is_refused(&self.gateway),
            is_not_ready(&self.page),
        );
        self.reading.answers_a_heartbeat().await;
        let seen = self.reading.events.len();
        tokio::join!(
            is_refused(&mut self.idle, &["STORAGE_UNAVAILABLE"]),
            is_refused(&mut self.new, &["STORAGE_UNAVAILABLE"]),
        );
        for member in [&mut self.reading, &mut self.idle, &mut self.new] {
            member.answers_a_heartbeat().await;
        }
        assert_eq!(self.reading.events.len(), seen, "nothing new is shown");
        assert_eq!(starts(&self.idle.events), 1);
        assert_eq!(starts(&self.new.events), 0);
    }

    /// Everything continues on the same sockets, and refused commands had no effect.
    async fn checks_recovery(&mut self, since: Instant) {
        tokio::join!(
            is_served_again(&mut self.idle, since),
            is_served_again(&mut self.new, since),
        );
        self.page.gets("/readyz").await.is(200);
        let mut visitor = self.gateway.anonymous();
        visitor
            .logs_in("root", crate::actors::PASSWORD)
            .await
            .is(200);
        assert_eq!(self.reading.sees_run_end().await["status"], "completed");
        assert_eq!(self.reading.text(), words(), "the answer is whole");
        for (member, runs) in [(&self.reading, 1), (&self.idle, 2), (&self.new, 1)] {
            assert_eq!(starts(&member.events), runs, "what was refused did not run");
        }
        self.checks_stored_events().await;
    }

    /// Every received event is stored after the gateway was killed.
    async fn checks_stored_events(&mut self) {
        self.gateway.signal("-KILL");
        self.gateway.restart();
        let token = self.page.token.clone().unwrap();
        for member in [&self.reading, &self.idle, &self.new] {
            let offsets = member.offsets();
            assert!(
                offsets.iter().copied().eq(1..=offsets.len() as u64),
                "no hole and nothing twice: {offsets:?}"
            );
            let address = self.gateway.address();
            let mut back = WsClient::connects(address, &token, &member.position_after(0)).await;
            assert_eq!(back.ack["resume"], "replayed");
            while back.offsets().len() < offsets.len() {
                back.receives().await.unwrap();
            }
            back.sees_nothing().await;
            assert_eq!(back.offsets(), offsets);
            assert_eq!(back.text(), member.text());
        }
    }
}

impl WsClient {
    async fn answers_a_heartbeat(&mut self) {
        let asked = Instant::now();
        self.sends("HEARTBEAT", json!({})).await;
        self.sees("HEARTBEAT").await;
        assert!(asked.elapsed() < ERROR_DEADLINE, "{:?}", asked.elapsed());
    }
}

async fn is_refused(member: &mut WsClient, codes: &[&str]) {
    let asked = Instant::now();
    member.prompts("/echo refused").await;
    let refusal = member.sees("ERROR_MESSAGE").await;
    let code = refusal["payload"]["code"].as_str().unwrap();
    assert!(codes.contains(&code), "{refusal}");
    assert!(asked.elapsed() < ERROR_DEADLINE, "{:?}", asked.elapsed());
}

async fn login_is_refused(gateway: &Gateway) {
    let asked = Instant::now();
    let mut visitor = gateway.anonymous();
    let answer = visitor.logs_in("root", crate::actors::PASSWORD).await;
    answer.refuses(503, "STORAGE_UNAVAILABLE");
    assert!(asked.elapsed() < ERROR_DEADLINE, "{:?}", asked.elapsed());
}

async fn is_not_ready(page: &HttpClient) {
    let asked = Instant::now();
    page.gets("/healthz").await.is(200);
    let answer = page.gets("/readyz").await.is(503);
    assert_eq!(answer.json()["components"]["database"], "failing");
    assert!(asked.elapsed() < ERROR_DEADLINE, "{:?}", asked.elapsed());
}

/// Prompts until accepted, within the deadline.
async fn is_served_again(member: &mut WsClient, since: Instant) {
    loop {
        member.prompts("/echo back").await;
        let frame = member.receives().await.unwrap();
        if frame["type"] == "TASK_STATUS_UPDATE" {
            break;
        }
        assert_eq!(frame["payload"]["code"], "STORAGE_UNAVAILABLE", "{frame}");
        assert!(since.elapsed() < RECOVERY_DEADLINE, "not healed: {frame}");
    }
    assert_eq!(member.sees_run_end().await["status"], "completed");
    assert!(since.elapsed() < RECOVERY_DEADLINE, "{:?}", since.elapsed());
}

/// The whole answer.
fn words() -> String {
    let words: Vec<String> = (1..=WORDS).map(|word| format!("{word} ")).collect();
    words.concat()
}

fn starts(events: &[Value]) -> usize {
    let is_start = |event: &&Value| event["payload"]["status"] == "starting";
    events.iter().filter(is_start).count()
}

#[tokio::test]
async fn an_unresponsive_postgres_is_waited_for_and_nothing_is_lost() {
    let server = PostgresServer::start().await;
    let mut scene = OutageTest::start(Storage::Postgres(server.url())).await;
    server.freezes();
    scene.checks_outage().await;
    server.thaws();
    scene.checks_recovery(Instant::now()).await;
}

#[tokio::test]
async fn a_restarting_postgres_is_waited_for_and_nothing_is_lost() {
    let mut server = PostgresServer::start().await;
    let mut scene = OutageTest::start(Storage::Postgres(server.url())).await;
    server.shuts_down();
    scene.checks_outage().await;
    server.starts_again().await;
    scene.checks_recovery(Instant::now()).await;
}

#[tokio::test]
async fn a_locked_sqlite_file_is_waited_for_and_nothing_is_lost() {
    let mut scene = OutageTest::start(Storage::Sqlite(None)).await;
    let mut other = opens_database(&scene.gateway).await;
    sqlx::query("begin exclusive")
        .execute(&mut other)
        .await
        .unwrap();
    scene.checks_outage().await;
    sqlx::query("rollback").execute(&mut other).await.unwrap();
    scene.checks_recovery(Instant::now()).await;
}

async fn opens_database(gateway: &Gateway) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(gateway.sqlite_file())
        .busy_timeout(Duration::from_secs(20))
        .connect()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_full_disk_refuses_prompts_and_still_serves_readers() {
    let disk = SmallDisk::mount();
    let mut scene = OutageTest::start(Storage::Sqlite(Some(disk.path()))).await;
    disk.fills_up();
    scene.checks_outage().await;

    scene.idle.sends("REQUEST_STATE", json!({})).await;
    let state = scene.idle.sees("FULL_STATE").await;
    let history = state["payload"]["conversationHistory"].as_array().unwrap();
    assert_eq!(history.len(), 2, "{state}");
    let token = scene.page.token.clone().unwrap();
    for member in [&scene.reading, &scene.idle] {
        let address = scene.gateway.address();
        let mut second = WsClient::connects(address, &token, &member.position_after(0)).await;
        assert_eq!(second.ack["resume"], "replayed");
        while second.offsets().len() < member.offsets().len() {
            second.receives().await.unwrap();
        }
        assert_eq!(second.text(), member.text());
        let path = format!("/api/sessions/{}/events", member.session());
        let stored = scene.page.gets(&path).await.is(200);
        assert_eq!(stored.text.lines().count(), member.offsets().len());
    }

    disk.is_emptied();
    scene.checks_recovery(Instant::now()).await;
    let mut file = opens_database(&scene.gateway).await;
    let verdict: String = sqlx::query_scalar("pragma integrity_check")
        .fetch_one(&mut file)
        .await
        .unwrap();
    assert_eq!(verdict, "ok");
}

#[tokio::test]
async fn below_the_floor_of_free_disk_space_prompts_are_refused_with_the_figure() {
    let disk = SmallDisk::mount();
    let storage = Storage::Sqlite(Some(disk.path()));
    let gateway = Settings::new().with_storage(storage).start().await;
    let page = gateway.logged_in("root").await;
    let mut member = page.enters("").await;
    member.prompts("/echo before").await;
    member.sees_run_end().await;
    let refusals = async || {
        let metrics = page.gets("/metrics").await.is(200).text;
        let counted = "switchboard_quota_refusals_total{quota=\"minFreeBytes\"} ";
        let mut lines = metrics.lines();
        let count = lines.find_map(|line| line.strip_prefix(counted)?.parse::<u64>().ok());
        count.unwrap_or_default()
    };
    assert_eq!(refusals().await, 0);
    // A twentieth of 6 MiB is the floor.
    disk.fills_up_to(200 * 1024);
    member.prompts("/echo refused").await;
    let refused = member.sees("ERROR_MESSAGE").await["payload"].clone();
    assert_eq!(refused["code"], "STORAGE_UNAVAILABLE", "{refused}");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("disk is nearly full"), "{message}");
    assert!(message.contains("the floor is 308 KiB"), "{message}");
    let created = page.posts("/api/sessions", json!({})).await;
    let created = created.refuses(503, "STORAGE_UNAVAILABLE");
    assert!(created.text.contains("KiB free"), "{}", created.text);
    assert_eq!(refusals().await, 2);
    disk.is_emptied();
    is_served_again(&mut member, Instant::now()).await;
}

// A second thread: the proxy must work while the test waits for the gateway's start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_reply_was_lost_is_neither_lost_nor_repeated() {
    let server = PostgresServer::start().await;
    let line = LossyProxy::to(server.port()).await;
    let gateway = Settings::new()
        .with_storage(Storage::Postgres(line.url()))
        .start()
        .await;
    let token = gateway.logged_in("root").await.token.unwrap();
    let mut member = WsClient::connects(gateway.address(), &token, "").await;
    let mut runs = 0;
    for _ in 0..3 {
        member.prompts(&format!("/stream {WORDS} 5")).await;
        member.sees("TASK_OUTPUT_CHUNK").await;
        line.loses_next_commit_reply();
        assert_eq!(member.sees_run_end().await["status"], "completed");
        assert!(line.has_lost_reply(), "there was a commit after the first");
        runs += 1;
        assert_eq!(member.text(), words().repeat(runs));
    }
    let offsets = member.offsets();
    assert!(offsets.iter().copied().eq(1..=offsets.len() as u64));
}

/// Mia's session with ben in it, on a Postgres behind the lossy proxy.
async fn shared_session(line: &LossyProxy) -> (Gateway, HttpClient, WsClient) {
    let gateway = Settings::new()
        .with_storage(Storage::Postgres(line.url()))
        .start()
        .await;
    for name in ["mia", "ben"] {
        gateway.adds_user(name, "member");
    }
    let mia = gateway.logged_in("mia").await;
    let made = mia.posts("/api/sessions", json!({})).await.is(201).json();
    let session = made["id"].as_str().unwrap();
    mia.shares(session, "ben", "viewer").await;
    let ben = gateway.logged_in("ben").await;
    let guest = ben.enters(&format!("?session={session}")).await;
    (gateway, mia, guest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_whose_grant_was_revoked_is_disconnected_even_if_the_reply_was_lost() {
    let server = PostgresServer::start().await;
    let line = LossyProxy::to(server.port()).await;
    let (_gateway, mia, mut guest) = shared_session(&line).await;
    let path = format!("/api/sessions/{}/grants/ben", guest.session());
    line.loses_next_commit_reply();
    let unheard = mia.sends("DELETE", &path, None).await;
    unheard.refuses(503, "STORAGE_UNAVAILABLE");
    assert!(line.has_lost_reply());
    assert_eq!(guest.sees_close().await.code, 4403);
    let again = mia.sends("DELETE", &path, None).await;
    again.refuses(404, "NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_was_ended_stays_ended_even_if_the_reply_was_lost() {
    let server = PostgresServer::start().await;
    let line = LossyProxy::to(server.port()).await;
    let (_gateway, mia, mut guest) = shared_session(&line).await;
    let path = format!("/api/sessions/{}", guest.session());
    line.loses_next_commit_reply();
    let unheard = mia.sends("DELETE", &path, None).await;
    unheard.refuses(503, "STORAGE_UNAVAILABLE");
    assert!(line.has_lost_reply());
    assert_eq!(guest.sees_close().await.code, 4409);
    let again = mia.sends("DELETE", &path, None).await;
    again.refuses(404, "NOT_FOUND");
}

/// Has the connection of a login swallowed, which keeps the lock that every login needs. Returns when.
async fn swallow_login(line: &LossyProxy, gateway: &Gateway, page: &HttpClient) -> Instant {
    for _ in 0..10 {
        line.swallows_transaction_after(1);
        let cut = Instant::now();
        let readiness = async {
            while !line.has_swallowed() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            page.gets("/healthz").await.is(200);
            // The statement that takes the lock may still be on its way to the server.
            loop {
                let readiness = page.gets("/readyz").await;
                if readiness.status == 503 || cut.elapsed() > ERROR_DEADLINE {
                    return readiness;
                }
            }
        };
        let mut visitor = gateway.anonymous();
        let login = visitor.logs_in("root", crate::actors::PASSWORD);
        let (login, readiness) = tokio::join!(login, readiness);
        // It may have been the transaction of a background task, which holds no login up.
        if login.status == 200 {
            continue;
        }
        login.refuses(503, "STORAGE_UNAVAILABLE");
        let database = &readiness.is(503).json()["components"]["database"];
        assert_eq!(*database, "failing");
        return cut;
    }
    panic!("no login was swallowed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_lost_inside_a_login_holds_up_other_logins_for_five_seconds_at_most() {
    let server = PostgresServer::start().await;
    let line = LossyProxy::to(server.port()).await;
    let storage = Storage::Postgres(line.url());
    let gateway = Settings::new().with_storage(storage).start().await;
    let page = gateway.logged_in("root").await;
    let cut = swallow_login(&line, &gateway, &page).await;
    loop {
        let mut visitor = gateway.anonymous();
        let answer = visitor.logs_in("root", crate::actors::PASSWORD).await;
        let waited = cut.elapsed();
        assert!(waited < RECOVERY_DEADLINE, "{waited:?}");
        if answer.status == 200 {
            break;
        }
        answer.refuses(503, "STORAGE_UNAVAILABLE");
    }
    page.gets("/readyz").await.is(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_lost_while_idle_are_replaced_within_five_seconds() {
    let server = PostgresServer::start().await;
    let line = LossyProxy::to(server.port()).await;
    let storage = Storage::Postgres(line.url());
    let gateway = Settings::new().with_storage(storage).start().await;
    let page = gateway.logged_in("root").await;
    // Enough at once that the pool has opened all its connections.
    let mut reading = JoinSet::new();
    for _ in 0..40 {
        let reader = page.clone();
        reading.spawn(async move { reader.gets("/api/sessions").await.is(200) });
    }
    reading.join_all().await;
    line.swallows_open_connections();
    let cut = Instant::now();
    while page.gets("/api/sessions").await.status != 200 || page.gets("/readyz").await.status != 200
    {
        assert!(cut.elapsed() < RECOVERY_DEADLINE, "{:?}", cut.elapsed());
    }
    let mut visitor = gateway.anonymous();
    let answer = visitor.logs_in("root", crate::actors::PASSWORD).await;
    answer.is(200);
    assert!(cut.elapsed() < RECOVERY_DEADLINE, "{:?}", cut.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_lost_inside_a_commit_holds_up_its_session_for_five_seconds_at_most() {
    let server = PostgresServer::start().await;
    let line = LossyProxy::to(server.port()).await;
    let storage = Storage::Postgres(line.url());
    let gateway = Settings::new().with_storage(storage).start().await;
    let page = gateway.logged_in("root").await;
    let mut member = page.enters("").await;
    member.prompts("/echo before").await;
    member.sees_run_end().await;
    line.swallows_transaction_after(2);
    let cut = Instant::now();
    is_refused(&mut member, &["STORAGE_UNAVAILABLE"]).await;
    assert!(line.has_swallowed());
    is_served_again(&mut member, cut).await;
    assert_eq!(starts(&member.events), 2, "what was refused did not run");
}

/// A command waits for storage while its sender loses their rights.
#[tokio::test]
async fn a_reply_is_withheld_from_a_user_disabled_while_it_was_pending() {
    let server = PostgresServer::start().await;
    let settings = Settings::new().with_storage(Storage::Postgres(server.url()));
    let gateway = settings.start().await;
    gateway.adds_user("ben", "member");
    let (page, ben) = (
        gateway.logged_in("root").await,
        gateway.logged_in("ben").await,
    );
    let mut guest = ben.enters("").await;
    guest.prompts("/echo before").await;
    guest.sees_run_end().await;
    let mut other = sqlx::PgConnection::connect(&server.url()).await.unwrap();
    let held = "begin; select id from sessions for update";
    sqlx::raw_sql(held).execute(&mut other).await.unwrap();

    let path = format!("/api/sessions/{}/commands", guest.session());
    let prompt =
        json!({ "type": "SUBMIT_PROMPT", "payload": { "text": "/echo x", "mode": "act" } });
    let mut asking = JoinSet::new();
    asking.spawn(async move { ben.posts(&path, prompt).await });
    let mut waiting = 0;
    while waiting == 0 {
        let held_up = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
        waiting = sqlx::query_scalar::<_, i64>(held_up)
            .fetch_one(&mut other)
            .await
            .unwrap();
    }
    let users = page.gets("/api/admin/users").await.is(200).json();
    let users = users["users"].as_array().unwrap();
    let id = users.iter().find(|user| user["username"] == "ben").unwrap()["id"].clone();
    let path = format!("/api/admin/users/{}", id.as_str().unwrap());
    let disabled = Some(json!({ "disabled": true }));
    page.sends("PATCH", &path, disabled).await.is(200);
    sqlx::raw_sql("rollback").execute(&mut other).await.unwrap();
    let answer = asking.join_next().await.unwrap().unwrap();
    answer.refuses(401, "AUTH_FAILED");
    let begun = "select count(*) from sessions where last_prompt = '/echo x'";
    let begun = sqlx::query_scalar::<_, i64>(begun).fetch_one(&mut other);
    assert_eq!(begun.await.unwrap(), 1, "it was waited for, and done");
}

/// The revocation waits for storage while its sender disconnects.
#[tokio::test]
async fn a_revocation_completes_even_if_its_sender_disconnects() {
    let gateway = Settings::new()
        .with_storage(Storage::Sqlite(None))
        .start()
        .await;
    for name in ["mia", "ben"] {
        gateway.adds_user(name, "member");
    }
    let mia = gateway.logged_in("mia").await;
    let made = mia.posts("/api/sessions", json!({})).await.is(201).json();
    let session = made["id"].as_str().unwrap();
    mia.shares(session, "ben", "viewer").await;
    let ben = gateway.logged_in("ben").await;
    let mut guest = ben.enters(&format!("?session={session}")).await;
    let mut file = opens_database(&gateway).await;
    sqlx::query("begin immediate")
        .execute(&mut file)
        .await
        .unwrap();
    let mut tcp = gateway.raw_tcp().await;
    let head = format!(
        "DELETE /api/sessions/{session}/grants/ben HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        gateway.address(),
        mia.token.as_deref().unwrap(),
    );
    tcp.writes(&head).await;
    // After the first responses the revocation has started; after the second the gateway has seen the
    // disconnect.
    let path = format!("/api/sessions/{session}");
    for _ in 0..20 {
        mia.gets(&path).await.is(200);
    }
    drop(tcp);
    for _ in 0..20 {
        mia.gets(&path).await.is(200);
    }
    sqlx::query("rollback").execute(&mut file).await.unwrap();
    assert_eq!(guest.sees_close().await.code, 4403);
}

/// One peer vanishes while idle, the other during an answer.
#[tokio::test]
async fn a_vanished_peer_is_dropped_within_35_seconds() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let token = page.token.clone().unwrap();
    let silent = gateway.connects_without_reading(&token, "").await;
    let mut member = WsClient::connects(gateway.address(), &token, "").await;
    member.prompts("/stream 100000 1").await;
    let listening = gateway
        .connects_without_reading(&token, &member.position())
        .await;
    open_sockets_are(&page, 3, Duration::from_secs(5)).await;
    for stream in [&silent, &listening] {
        // Accepts 0 bytes of every packet: all input is dropped, and nothing is acknowledged.
        let nothing = SockFilter::new(0x06, 0, 0, 0);
        SockRef::from(stream).attach_filter(&[nothing]).unwrap();
    }
    let vanished = Instant::now();
    member.sends("CANCEL_TASK", json!({})).await;
    member.sees_run_end().await;
    drop(member);
    open_sockets_are(&page, 2, Duration::from_secs(5)).await;
    let left = Duration::from_secs(36).saturating_sub(vanished.elapsed());
    open_sockets_are(&page, 0, left).await;
    assert!(vanished.elapsed() > Duration::from_secs(20), "not at once");
}

/// An event stream has no pong, and a request none either.
#[tokio::test]
async fn a_vanished_reader_of_a_stream_is_dropped_within_35_seconds_and_one_that_stands_still_is_not()
 {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let token = page.token.clone().unwrap();
    let mut member = WsClient::connects(gateway.address(), &token, "").await;
    member.prompts("/stream 100000 5").await;
    member.sees("TASK_STATUS_UPDATE").await;
    let path = format!("/api/sessions/{}/stream", member.session());
    let open = async || {
        let stream = gateway.requests_without_reading(&token, &path).await;
        stream.readable().await.unwrap();
        stream
    };
    let (vanished, still) = (open().await, open().await);
    streams_are(&page, 2, Duration::from_secs(5)).await;
    let nothing = SockFilter::new(0x06, 0, 0, 0);
    SockRef::from(&vanished).attach_filter(&[nothing]).unwrap();
    let since = Instant::now();
    let reading = async {
        while since.elapsed() < Duration::from_secs(36) {
            member.receives().await.unwrap();
        }
    };
    let watching = streams_are(&page, 1, Duration::from_secs(36));
    tokio::select! {
        () = watching => {}
        () = reading => panic!("it is still open"),
    }
    // The other one is alive: it acknowledges, though it reads nothing.
    let mut byte = [0];
    assert_eq!(still.try_read(&mut byte).unwrap(), 1);
    member.sends("CANCEL_TASK", json!({})).await;
    member.sees_run_end().await;
}

async fn streams_are(page: &HttpClient, wanted: usize, within: Duration) {
    connections_are(page, "sse", wanted, within).await;
}

async fn open_sockets_are(page: &HttpClient, wanted: usize, within: Duration) {
    connections_are(page, "ws", wanted, within).await;
}

/// Polls the gauge.
async fn connections_are(page: &HttpClient, door: &str, wanted: usize, within: Duration) {
    let line = format!("switchboard_connections_open{{door=\"{door}\"}} {wanted}\n");
    let since = Instant::now();
    loop {
        let metrics = page.gets("/metrics").await.is(200).text;
        if metrics.contains(&line) {
            return;
        }
        assert!(since.elapsed() < within, "{wanted} wanted: {metrics}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Restarts a gateway with many users, who all reconnect at once.
#[tokio::test]
async fn a_thousand_clients_reconnect_at_once_without_a_password() {
    const MANY: usize = 1_000;
    let mut gateway = Settings::new()
        .with("SERVER__MAX_CONNECTIONS_PER_ADDRESS", "2000")
        .start()
        .await;
    let token = gateway.logged_in("root").await.token.unwrap();
    let mut members = Vec::new();
    // First they connect one by one; the reconnect is what is tested.
    for first in (0..MANY).step_by(100) {
        let mut coming = JoinSet::new();
        for number in first..first + 100 {
            let (address, token) = (gateway.address(), token.clone());
            coming.spawn(async move {
                let mut member = WsClient::connects(address, &token, "").await;
                member.prompts(&format!("/echo mine-{number}")).await;
                member.sees_run_end().await;
                member
            });
        }
        members.extend(coming.join_all().await);
    }
    gateway.signal("-KILL");
    gateway.restart();
    let started = Instant::now();
    let mut coming = JoinSet::new();
    for member in members {
        let (address, token) = (gateway.address(), token.clone());
        coming.spawn(async move {
            let mut back = WsClient::reconnects(address, &token, &member.position_after(0)).await;
            assert_eq!(back.ack["resume"], "replayed");
            while back.events.len() < member.events.len() {
                back.receives().await.unwrap();
            }
            assert_eq!(back.events, member.events);
            back
        });
    }
    let back = coming.join_all().await;
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
    let mut page = gateway.anonymous();
    page.token = Some(token);
    let metrics = page.gets("/metrics").await.is(200).text;
    assert_eq!(back.len(), MANY);
    assert!(
        metrics.contains("switchboard_auth_logins_total{outcome=\"started\"} 0"),
        "{metrics}"
    );
}
