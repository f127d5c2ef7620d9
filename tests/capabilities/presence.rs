//! Presence: which users are connected to a session, as its members receive it.

use serde_json::{Value, json};

use crate::actors::{Gateway, WsClient};

/// Names, access and number of connections.
fn who(presence: &Value) -> Vec<(String, String, u64)> {
    let word = |member: &Value, key: &str| member[key].as_str().unwrap().to_owned();
    let mut members: Vec<_> = presence["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| {
            assert!(member["userId"].as_str().unwrap().starts_with("usr_"));
            let connections = member["connections"].as_u64().unwrap();
            (
                word(member, "username"),
                word(member, "access"),
                connections,
            )
        })
        .collect();
    members.sort();
    members
}

fn one(name: &str, access: &str, connections: u64) -> (String, String, u64) {
    (name.to_owned(), access.to_owned(), connections)
}

/// Waits for this presence; earlier states may or may not have been sent.
async fn expects_presence(member: &mut WsClient, expected: &[(String, String, u64)]) {
    loop {
        let shown = who(&member.sees_peer_frame("PRESENCE").await);
        if shown == expected {
            return;
        }
        assert!(shown.len() <= 2, "{shown:?}");
    }
}

#[tokio::test]
async fn only_members_of_a_session_receive_its_presence() {
    let gateway = Gateway::start().await;
    gateway.adds_user("ben", "member");
    let (root, ben) = (
        gateway.logged_in("root").await,
        gateway.logged_in("ben").await,
    );
    let mut laptop = root.enters("").await;
    let mut elsewhere = root.enters("").await;
    laptop.prompts("/echo hello").await;
    laptop.sees_run_end().await;
    laptop.sees_nothing_about_peers().await;
    let query = format!("?session={}", laptop.session());

    let mut phone = root.enters(&query).await;
    for member in [&mut laptop, &mut phone] {
        expects_presence(member, &[one("root", "owner", 2)]).await;
    }
    root.shares(&laptop.session(), "ben", "viewer").await;
    let mut viewer = ben.enters(&query).await;
    let all = [one("ben", "viewer", 1), one("root", "owner", 2)];
    for member in [&mut laptop, &mut phone, &mut viewer] {
        expects_presence(member, &all).await;
    }
    root.shares(&laptop.session(), "ben", "editor").await;
    let all = [one("ben", "editor", 1), one("root", "owner", 2)];
    for member in [&mut laptop, &mut phone, &mut viewer] {
        expects_presence(member, &all).await;
    }
    drop(phone);
    let all = [one("ben", "editor", 1), one("root", "owner", 1)];
    for member in [&mut laptop, &mut viewer] {
        expects_presence(member, &all).await;
    }
    drop(viewer);
    expects_presence(&mut laptop, &[one("root", "owner", 1)]).await;
    laptop.sees_nothing_about_peers().await;
    elsewhere.sees_nothing_about_peers().await;
    assert!(
        laptop
            .offsets()
            .iter()
            .copied()
            .eq(1..=laptop.offsets().len() as u64)
    );
}

#[tokio::test]
async fn a_sole_member_who_reconnects_receives_no_presence() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let mut first = root.enters("").await;
    first.prompts("/echo hello").await;
    first.sees_run_end().await;
    let (query, position) = (format!("?session={}", first.session()), first.position());
    let mut second = root.enters(&query).await;
    expects_presence(&mut second, &[one("root", "owner", 2)]).await;
    drop(first);
    expects_presence(&mut second, &[one("root", "owner", 1)]).await;
    let connection = second.ack["connectionId"].as_str().unwrap().to_owned();
    root.sends(
        "DELETE",
        &format!("/api/admin/connections/{connection}"),
        None,
    )
    .await
    .is(204);
    second.sees_close().await;
    let mut alone = root.enters(&position).await;
    alone.sees_nothing_about_peers().await;
}

#[tokio::test]
async fn presence_comes_after_the_acknowledgement_and_the_state() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let mut first = root.enters("").await;
    first.prompts("/echo hello").await;
    first.sees_run_end().await;
    let token = root.token.as_deref().unwrap();
    let header = [("authorization", format!("Bearer {token}"))];
    let query = format!("?session={}&after=999999", first.session());
    let mut socket = WsClient::opens_socket(gateway.address(), &query, &header)
        .await
        .unwrap();
    let mut kinds = Vec::new();
    for _ in 0..3 {
        let frame = crate::actors::next_json(&mut socket).await.unwrap();
        kinds.push(frame["type"].clone());
    }
    assert_eq!(
        kinds,
        [
            json!("CONNECTION_ACK"),
            json!("FULL_STATE"),
            json!("PRESENCE")
        ]
    );
}
