//! What goes wrong around a gateway, and what everybody may expect of it meanwhile and afterwards.

mod disk;
mod failover;
mod line;
mod server;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use socket2::{SockFilter, SockRef};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tokio::task::JoinSet;

use crate::actors::{Browser, Gateway, Member, Settings, Storage};
use disk::Disk;
use line::Line;
use server::Server;

/// How soon somebody hears that storage is unavailable.
const TOLD_WITHIN: Duration = Duration::from_secs(3);
/// How soon everything works after storage is back.
const HEALED_WITHIN: Duration = Duration::from_secs(5);
/// The words of the answer that is under way when storage goes away.
const WORDS: usize = 300;

/// A gateway and those who were there before anything went wrong.
struct Scene {
    gateway: Gateway,
    page: Browser,
    /// Sees an answer that is under way.
    reading: Member,
    /// Has asked something before.
    idle: Member,
    /// Has not asked anything yet.
    new: Member,
}

impl Scene {
    async fn begins(storage: Storage) -> Self {
        let gateway = Settings::new().storing(storage).start().await;
        let page = gateway.browser("root").await;
        let token = page.token.clone().unwrap();
        let mut idle = Member::joins(gateway.address(), &token, "").await;
        idle.prompts("/echo before").await;
        idle.sees_run_end().await;
        let new = Member::joins(gateway.address(), &token, "").await;
        let mut reading = Member::joins(gateway.address(), &token, "").await;
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

    /// Whoever asks for something is told soon, nothing is shown that is not stored, and who is
    /// connected stays so.
    async fn is_without_storage(&mut self) {
        tokio::join!(
            is_refused(&mut self.reading, &["STORAGE_UNAVAILABLE", "BUSY"]),
            is_refused(&mut self.idle, &["STORAGE_UNAVAILABLE"]),
            is_refused(&mut self.new, &["STORAGE_UNAVAILABLE"]),
            nobody_logs_in(&self.gateway),
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

    /// Everything goes on, on the same sockets, and what was refused has not happened.
    async fn has_healed(&mut self, since: Instant) {
        tokio::join!(
            is_served_again(&mut self.idle, since),
            is_served_again(&mut self.new, since),
        );
        self.page.gets("/readyz").await.is(200);
        let mut visitor = self.gateway.visitor();
        visitor
            .logs_in("root", crate::actors::PASSWORD)
            .await
            .is(200);
        assert_eq!(self.reading.sees_run_end().await["status"], "completed");
        assert_eq!(self.reading.text(), words(), "the answer is whole");
        for (member, runs) in [(&self.reading, 1), (&self.idle, 2), (&self.new, 1)] {
            assert_eq!(starts(&member.events), runs, "what was refused did not run");
        }
        self.is_all_stored().await;
    }

    /// What everybody has seen is there after the gateway was killed.
    async fn is_all_stored(&mut self) {
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
            let mut back = Member::joins(address, &token, &member.position_after(0)).await;
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

impl Member {
    async fn answers_a_heartbeat(&mut self) {
        let asked = Instant::now();
        self.sends("HEARTBEAT", json!({})).await;
        self.sees("HEARTBEAT").await;
        assert!(asked.elapsed() < TOLD_WITHIN, "{:?}", asked.elapsed());
    }
}

async fn is_refused(member: &mut Member, codes: &[&str]) {
    let asked = Instant::now();
    member.prompts("/echo refused").await;
    let refusal = member.sees("ERROR_MESSAGE").await;
    let code = refusal["payload"]["code"].as_str().unwrap();
    assert!(codes.contains(&code), "{refusal}");
    assert!(asked.elapsed() < TOLD_WITHIN, "{:?}", asked.elapsed());
}

async fn nobody_logs_in(gateway: &Gateway) {
    let asked = Instant::now();
    let mut visitor = gateway.visitor();
    let answer = visitor.logs_in("root", crate::actors::PASSWORD).await;
    answer.refuses(503, "STORAGE_UNAVAILABLE");
    assert!(asked.elapsed() < TOLD_WITHIN, "{:?}", asked.elapsed());
}

async fn is_not_ready(page: &Browser) {
    let asked = Instant::now();
    page.gets("/healthz").await.is(200);
    let answer = page.gets("/readyz").await.is(503);
    assert_eq!(answer.json()["components"]["database"], "failing");
    assert!(asked.elapsed() < TOLD_WITHIN, "{:?}", asked.elapsed());
}

/// Asks until it is not refused, which must be soon.
async fn is_served_again(member: &mut Member, since: Instant) {
    loop {
        member.prompts("/echo back").await;
        let frame = member.receives().await.unwrap();
        if frame["type"] == "TASK_STATUS_UPDATE" {
            break;
        }
        assert_eq!(frame["payload"]["code"], "STORAGE_UNAVAILABLE", "{frame}");
        assert!(since.elapsed() < HEALED_WITHIN, "not healed: {frame}");
    }
    assert_eq!(member.sees_run_end().await["status"], "completed");
    assert!(since.elapsed() < HEALED_WITHIN, "{:?}", since.elapsed());
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
async fn a_postgres_that_stops_answering_is_waited_for_and_nothing_is_lost() {
    let server = Server::start().await;
    let mut scene = Scene::begins(Storage::Postgres(server.url())).await;
    server.freezes();
    scene.is_without_storage().await;
    server.thaws();
    scene.has_healed(Instant::now()).await;
}

#[tokio::test]
async fn a_postgres_that_is_restarted_is_waited_for_and_nothing_is_lost() {
    let mut server = Server::start().await;
    let mut scene = Scene::begins(Storage::Postgres(server.url())).await;
    server.shuts_down();
    scene.is_without_storage().await;
    server.starts_again().await;
    scene.has_healed(Instant::now()).await;
}

#[tokio::test]
async fn a_sqlite_file_that_somebody_else_has_locked_is_waited_for_and_nothing_is_lost() {
    let mut scene = Scene::begins(Storage::Sqlite(None)).await;
    let mut other = opens(&scene.gateway).await;
    sqlx::query("begin exclusive")
        .execute(&mut other)
        .await
        .unwrap();
    scene.is_without_storage().await;
    sqlx::query("rollback").execute(&mut other).await.unwrap();
    scene.has_healed(Instant::now()).await;
}

async fn opens(gateway: &Gateway) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(gateway.sqlite_file())
        .busy_timeout(Duration::from_secs(20))
        .connect()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_full_disk_refuses_prompts_and_lets_everybody_read() {
    let disk = Disk::mount();
    let mut scene = Scene::begins(Storage::Sqlite(Some(disk.path()))).await;
    disk.fills_up();
    scene.is_without_storage().await;

    scene.idle.sends("REQUEST_STATE", json!({})).await;
    let state = scene.idle.sees("FULL_STATE").await;
    let history = state["payload"]["conversationHistory"].as_array().unwrap();
    assert_eq!(history.len(), 2, "{state}");
    let token = scene.page.token.clone().unwrap();
    for member in [&scene.reading, &scene.idle] {
        let address = scene.gateway.address();
        let mut second = Member::joins(address, &token, &member.position_after(0)).await;
        assert_eq!(second.ack["resume"], "replayed");
        while second.offsets().len() < member.offsets().len() {
            second.receives().await.unwrap();
        }
        assert_eq!(second.text(), member.text());
        let path = format!("/api/sessions/{}/events", member.session());
        let stored = scene.page.gets(&path).await.is(200);
        assert_eq!(stored.text.lines().count(), member.offsets().len());
    }

    disk.has_room_again();
    scene.has_healed(Instant::now()).await;
    let mut file = opens(&scene.gateway).await;
    let verdict: String = sqlx::query_scalar("pragma integrity_check")
        .fetch_one(&mut file)
        .await
        .unwrap();
    assert_eq!(verdict, "ok");
}

// A second thread: the line must work while the start of a gateway is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_was_lost_is_neither_lost_nor_done_twice() {
    let server = Server::start().await;
    let line = Line::to(server.port()).await;
    let gateway = Settings::new()
        .storing(Storage::Postgres(line.url()))
        .start()
        .await;
    let token = gateway.browser("root").await.token.unwrap();
    let mut member = Member::joins(gateway.address(), &token, "").await;
    let mut runs = 0;
    for _ in 0..3 {
        member.prompts(&format!("/stream {WORDS} 5")).await;
        member.sees("TASK_OUTPUT_CHUNK").await;
        line.loses_the_answer_to_the_next_commit();
        assert_eq!(member.sees_run_end().await["status"], "completed");
        assert!(line.has_lost_it(), "there was a commit after the first");
        runs += 1;
        assert_eq!(member.text(), words().repeat(runs));
    }
    let offsets = member.offsets();
    assert!(offsets.iter().copied().eq(1..=offsets.len() as u64));
}

/// Mia's session with ben in it, on a Postgres that is reached over a line.
async fn shared(line: &Line) -> (Gateway, Browser, Member) {
    let gateway = Settings::new()
        .storing(Storage::Postgres(line.url()))
        .start()
        .await;
    for name in ["mia", "ben"] {
        gateway.has_user(name, "member");
    }
    let mia = gateway.browser("mia").await;
    let made = mia.posts("/api/sessions", json!({})).await.is(201).json();
    let session = made["id"].as_str().unwrap();
    mia.shares(session, "ben", "viewer").await;
    let ben = gateway.browser("ben").await;
    let guest = ben.enters(&format!("?session={session}")).await;
    (gateway, mia, guest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_was_shut_out_by_an_act_without_an_answer_is_out() {
    let server = Server::start().await;
    let line = Line::to(server.port()).await;
    let (_gateway, mia, mut guest) = shared(&line).await;
    let path = format!("/api/sessions/{}/grants/ben", guest.session());
    line.loses_the_answer_to_the_next_commit();
    let unheard = mia.sends("DELETE", &path, None).await;
    unheard.refuses(503, "STORAGE_UNAVAILABLE");
    assert!(line.has_lost_it());
    assert_eq!(guest.sees_close().await.code, 4403);
    let again = mia.sends("DELETE", &path, None).await;
    again.refuses(404, "NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_was_ended_by_an_act_without_an_answer_is_over() {
    let server = Server::start().await;
    let line = Line::to(server.port()).await;
    let (_gateway, mia, mut guest) = shared(&line).await;
    let path = format!("/api/sessions/{}", guest.session());
    line.loses_the_answer_to_the_next_commit();
    let unheard = mia.sends("DELETE", &path, None).await;
    unheard.refuses(503, "STORAGE_UNAVAILABLE");
    assert!(line.has_lost_it());
    assert_eq!(guest.sees_close().await.code, 4409);
    let again = mia.sends("DELETE", &path, None).await;
    again.refuses(404, "NOT_FOUND");
}

/// A command waits for storage while its sender loses their rights.
#[tokio::test]
async fn an_answer_is_not_for_somebody_who_was_shut_out_while_it_was_waited_for() {
    let server = Server::start().await;
    let settings = Settings::new().storing(Storage::Postgres(server.url()));
    let gateway = settings.start().await;
    gateway.has_user("ben", "member");
    let (page, ben) = (gateway.browser("root").await, gateway.browser("ben").await);
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

/// The act waits for storage while the one who asked for it leaves.
#[tokio::test]
async fn an_act_goes_on_when_whoever_asked_for_it_leaves() {
    let gateway = Settings::new().storing(Storage::Sqlite(None)).start().await;
    for name in ["mia", "ben"] {
        gateway.has_user(name, "member");
    }
    let mia = gateway.browser("mia").await;
    let made = mia.posts("/api/sessions", json!({})).await.is(201).json();
    let session = made["id"].as_str().unwrap();
    mia.shares(session, "ben", "viewer").await;
    let ben = gateway.browser("ben").await;
    let mut guest = ben.enters(&format!("?session={session}")).await;
    let mut file = opens(&gateway).await;
    sqlx::query("begin immediate")
        .execute(&mut file)
        .await
        .unwrap();
    let mut wire = gateway.wire().await;
    let head = format!(
        "DELETE /api/sessions/{session}/grants/ben HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        gateway.address(),
        mia.token.as_deref().unwrap(),
    );
    wire.writes(&head).await;
    // By the time these are answered, the act has begun; and then, its asker is known to be gone.
    let path = format!("/api/sessions/{session}");
    for _ in 0..20 {
        mia.gets(&path).await.is(200);
    }
    drop(wire);
    for _ in 0..20 {
        mia.gets(&path).await.is(200);
    }
    sqlx::query("rollback").execute(&mut file).await.unwrap();
    assert_eq!(guest.sees_close().await.code, 4403);
}

/// One vanishes while nothing is to be said, the other in the middle of an answer.
#[tokio::test]
async fn a_peer_that_vanished_without_a_word_is_let_go_within_35_seconds() {
    let gateway = Gateway::start().await;
    let page = gateway.browser("root").await;
    let token = page.token.clone().unwrap();
    let silent = gateway.stops_reading(&token, "").await;
    let mut member = Member::joins(gateway.address(), &token, "").await;
    member.prompts("/stream 100000 1").await;
    let listening = gateway.stops_reading(&token, &member.position()).await;
    open_sockets_are(&page, 3, Duration::from_secs(5)).await;
    for stream in [&silent, &listening] {
        // Returns 0 bytes of every packet: whatever arrives is gone, and nothing is acknowledged.
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

/// Asks until the gauge says so.
async fn open_sockets_are(page: &Browser, wanted: usize, within: Duration) {
    let line = format!("switchboard_connections_open{{door=\"ws\"}} {wanted}\n");
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

/// A restart of a gateway with many users, all of whom come back at the same moment.
#[tokio::test]
async fn a_thousand_come_back_at_once_without_a_password() {
    const MANY: usize = 1_000;
    let mut gateway = Settings::new()
        .with("SERVER__MAX_CONNECTIONS_PER_ADDRESS", "2000")
        .start()
        .await;
    let token = gateway.browser("root").await.token.unwrap();
    let mut members = Vec::new();
    // They came one after the other, as people do; what is tried is how they come back.
    for first in (0..MANY).step_by(100) {
        let mut coming = JoinSet::new();
        for number in first..first + 100 {
            let (address, token) = (gateway.address(), token.clone());
            coming.spawn(async move {
                let mut member = Member::joins(address, &token, "").await;
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
            let mut back = Member::comes_back(address, &token, &member.position_after(0)).await;
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
    let mut page = gateway.visitor();
    page.token = Some(token);
    let metrics = page.gets("/metrics").await.is(200).text;
    assert_eq!(back.len(), MANY);
    assert!(
        metrics.contains("switchboard_auth_logins_total{outcome=\"started\"} 0"),
        "{metrics}"
    );
}
