//! Who is in a session, as those inside are told.

use serde_json::{Value, json};

use crate::actors::{Gateway, Member};

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

/// Waits until this is how things are: what was before may have been told as well, or not.
async fn hears_of(member: &mut Member, expected: &[(String, String, u64)]) {
    loop {
        let told = who(&member.hears("PRESENCE").await);
        if told == expected {
            return;
        }
        assert!(told.len() <= 2, "{told:?}");
    }
}

#[tokio::test]
async fn those_in_a_session_hear_of_each_other_and_nobody_else_does() {
    let gateway = Gateway::start().await;
    gateway.has_user("ben", "member");
    let (root, ben) = (gateway.browser("root").await, gateway.browser("ben").await);
    let mut laptop = root.enters("").await;
    let mut elsewhere = root.enters("").await;
    laptop.prompts("/echo hello").await;
    laptop.sees_run_end().await;
    laptop.hears_nothing().await;
    let query = format!("?session={}", laptop.session());

    let mut phone = root.enters(&query).await;
    for member in [&mut laptop, &mut phone] {
        hears_of(member, &[one("root", "owner", 2)]).await;
    }
    root.shares(&laptop.session(), "ben", "viewer").await;
    let mut viewer = ben.enters(&query).await;
    let all = [one("ben", "viewer", 1), one("root", "owner", 2)];
    for member in [&mut laptop, &mut phone, &mut viewer] {
        hears_of(member, &all).await;
    }
    root.shares(&laptop.session(), "ben", "editor").await;
    let all = [one("ben", "editor", 1), one("root", "owner", 2)];
    for member in [&mut laptop, &mut phone, &mut viewer] {
        hears_of(member, &all).await;
    }
    drop(phone);
    let all = [one("ben", "editor", 1), one("root", "owner", 1)];
    for member in [&mut laptop, &mut viewer] {
        hears_of(member, &all).await;
    }
    drop(viewer);
    hears_of(&mut laptop, &[one("root", "owner", 1)]).await;
    laptop.hears_nothing().await;
    elsewhere.hears_nothing().await;
    assert!(
        laptop
            .offsets()
            .iter()
            .copied()
            .eq(1..=laptop.offsets().len() as u64)
    );
}

#[tokio::test]
async fn whoever_comes_back_alone_is_told_nothing() {
    let gateway = Gateway::start().await;
    let root = gateway.browser("root").await;
    let mut first = root.enters("").await;
    first.prompts("/echo hello").await;
    first.sees_run_end().await;
    let (query, position) = (format!("?session={}", first.session()), first.position());
    let mut second = root.enters(&query).await;
    hears_of(&mut second, &[one("root", "owner", 2)]).await;
    drop(first);
    hears_of(&mut second, &[one("root", "owner", 1)]).await;
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
    alone.hears_nothing().await;
}

#[tokio::test]
async fn presence_comes_after_the_acknowledgement_and_the_state() {
    let gateway = Gateway::start().await;
    let root = gateway.browser("root").await;
    let mut first = root.enters("").await;
    first.prompts("/echo hello").await;
    first.sees_run_end().await;
    let token = root.token.as_deref().unwrap();
    let header = [("authorization", format!("Bearer {token}"))];
    let query = format!("?session={}&after=999999", first.session());
    let mut socket = Member::opens(gateway.address(), &query, &header)
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
