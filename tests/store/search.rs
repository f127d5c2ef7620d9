//! Finding sessions by what was said in them.

use sqlx::{Connection as _, PgConnection, SqliteConnection};
use switchboard::domain::account::Role;
use switchboard::domain::act::Action;
use switchboard::domain::id::{SessionId, UserId};
use switchboard::domain::search::Words;
use switchboard::store::{
    Append, AppendError, Hit, NewSession, SearchText, SessionChange, Snapshot, Summary,
};

use crate::journals::{append, new_session, owned};
use crate::{World, act, at};

crate::on_both_databases!(
    words_and_their_beginnings_are_found_in_any_case,
    the_words_of_a_path_are_words,
    every_word_must_be_there_but_not_in_one_place,
    no_input_is_more_than_words,
    nobody_finds_what_somebody_else_said,
    an_append_that_was_refused_is_not_found,
    a_title_is_found_as_it_is_now,
    ended_and_removed_sessions_are_not_found_and_archived_ones_are,
    what_has_left_the_journal_is_not_found,
    hits_come_in_pages_like_the_list,
    no_text_is_too_much_to_be_recorded,
    what_is_no_word_to_a_database_does_not_find_everything,
);

fn saying(session: SessionId, term: i64, after: u64, texts: &[&str]) -> Append {
    let text = |(offset, text): (u64, &&str)| SearchText {
        offset,
        text: (*text).to_owned(),
    };
    Append {
        texts: (after + 1..).zip(texts).map(text).collect(),
        ..append(session, term, after, texts)
    }
}

async fn says(world: &World, session: SessionId, texts: &[&str]) {
    let lease = world.store.claim_journal(session, "here").await.unwrap();
    let said = saying(session, lease.term, lease.head, texts);
    let added = world.store.append(&[said], at(1)).await.unwrap();
    assert_eq!(added, [Ok(())]);
}

async fn another(world: &World, owner: UserId, text: &str) -> NewSession {
    let new = new_session(owner);
    world.store.create_session(&new).await.unwrap();
    says(world, new.id, &[text]).await;
    new
}

async fn hits(world: &World, owner: UserId, question: &str) -> Vec<Hit> {
    let words = Words::of(question);
    world.store.search(owner, &words, None, 50).await.unwrap()
}

async fn finds(world: &World, owner: UserId, question: &str) -> Vec<SessionId> {
    let hits = hits(world, owner, question).await;
    hits.into_iter().map(|hit| hit.row.id).collect()
}

/// How many texts there are at all: what nobody may find is not only hidden.
async fn kept(world: &World) -> i64 {
    if let Some(url) = &world.config.database_url {
        let mut connection = PgConnection::connect(url.expose()).await.unwrap();
        let count = sqlx::query_scalar("select count(*) from session_texts");
        return count.fetch_one(&mut connection).await.unwrap();
    }
    let path = world.config.sqlite_path().display().to_string();
    let mut connection = SqliteConnection::connect(&path).await.unwrap();
    let count = sqlx::query_as(
        "select (select count(*) from session_texts), (select count(*) from session_words_docsize)",
    );
    let (texts, indexed): (i64, i64) = count.fetch_one(&mut connection).await.unwrap();
    assert_eq!(texts, indexed);
    texts
}

async fn words_and_their_beginnings_are_found_in_any_case(world: World) {
    let (mia, new) = owned(&world).await;
    says(
        &world,
        new.id,
        &["Why is the Parser slow?", "Because of 42 copies: größer"],
    )
    .await;
    for question in [
        "parser", "PARS", "p", "slow?", "42", "copies", "größer", "größ",
    ] {
        assert_eq!(finds(&world, mia, question).await, [new.id], "{question}");
    }
    for question in ["arser", "parsers", "copiesx", "nothing"] {
        assert!(finds(&world, mia, question).await.is_empty(), "{question}");
    }
    let found = &hits(&world, mia, "copies").await[0];
    assert_eq!(found.snippet, "Because of 42 copies: größer");
    assert_eq!((found.row.id, found.row.head), (new.id, 2));
}

async fn the_words_of_a_path_are_words(world: World) {
    let (mia, new) = owned(&world).await;
    let text = "see src/session_router.rs:12, mail a@example.org, https://x.example/deep?q=v2 2fa";
    says(&world, new.id, &[text]).await;
    for question in [
        "router",
        "session_router.rs",
        "example",
        "org",
        "deep",
        "q=v2",
        "2fa",
        "12",
    ] {
        assert_eq!(finds(&world, mia, question).await, [new.id], "{question}");
    }
}

async fn every_word_must_be_there_but_not_in_one_place(world: World) {
    let (mia, first) = owned(&world).await;
    says(
        &world,
        first.id,
        &["alpha beta", "gamma", "alpha gamma delta"],
    )
    .await;
    let second = another(&world, mia, "alpha").await;
    assert_eq!(finds(&world, mia, "alpha").await.len(), 2);
    assert_eq!(finds(&world, mia, "beta gamma").await, [first.id]);
    assert!(finds(&world, mia, "beta omega").await.is_empty());
    assert_eq!(finds(&world, mia, "alpha ALPHA").await.len(), 2);
    let title = SessionChange::Title("About omega".into());
    let renamed = world.store.change_session(second.id, mia, &title, at(2));
    assert!(renamed.await.unwrap());
    assert_eq!(finds(&world, mia, "omega alpha").await, [second.id]);
    // The text with most of the words is the one that is shown.
    let found = &hits(&world, mia, "delta alpha").await[0];
    assert_eq!(found.snippet, "alpha gamma delta");
}

async fn no_input_is_more_than_words(world: World) {
    let (mia, new) = owned(&world).await;
    says(&world, new.id, &["cats and dogs or near not owner text"]).await;
    let odd = [
        "\"",
        "'",
        "*",
        "cats*",
        "\"cats",
        "'cats'",
        "cats OR birds",
        "cats AND",
        "NOT birds",
        "NEAR(cats dogs)",
        "text:cats",
        "owner : cats",
        "-cats",
        "cats & !dogs",
        "cats | birds",
        "<->",
        "(",
        ":*",
        "\\",
        "cats\0dogs",
        "%",
        "_",
        "';drop table sessions;--",
        "usr",
        "=usr",
        "\u{0901}",
        "\u{093f}",
        "日本",
        "\u{1f980}",
        "^cats",
        "{cats}",
        "+",
        "cats + dogs",
    ];
    for question in odd {
        // Whatever it finds, it is an answer.
        hits(&world, mia, question).await;
    }
    for none in [
        "cats OR birds",
        "NOT birds",
        "cats | birds",
        "usr",
        "=usr",
        "*",
        "'",
        "",
    ] {
        assert!(finds(&world, mia, none).await.is_empty(), "{none}");
    }
    for one in [
        "cats*",
        "\"cats",
        "'cats'",
        "cats & !dogs",
        "owner : cats",
        "NEAR(cats dogs)",
    ] {
        assert_eq!(finds(&world, mia, one).await, [new.id], "{one}");
    }
    let owner = mia.to_string();
    assert!(finds(&world, mia, &owner).await.is_empty());
    assert!(finds(&world, mia, &owner.replace('_', "")).await.is_empty());
}

async fn nobody_finds_what_somebody_else_said(world: World) {
    let (mia, new) = owned(&world).await;
    says(&world, new.id, &["a secret plan"]).await;
    let bob = world.user("bob", Role::Member).await;
    let own = another(&world, bob, "no plan at all").await;
    let odd = [
        "secret",
        "sec",
        "secret OR plan",
        "\"secret\"",
        "text:secret",
        "* OR secret",
    ];
    for question in odd {
        assert!(finds(&world, bob, question).await.is_empty(), "{question}");
    }
    assert!(
        finds(&world, bob, &format!("{mia} secret"))
            .await
            .is_empty()
    );
    assert_eq!(finds(&world, bob, "plan").await, [own.id]);
    assert_eq!(finds(&world, mia, "plan").await, [new.id]);
}

async fn an_append_that_was_refused_is_not_found(world: World) {
    let (mia, new) = owned(&world).await;
    let lease = world.store.claim_journal(new.id, "here").await.unwrap();
    let late = saying(new.id, lease.term - 1, 0, &["zombie"]);
    let refused = world.store.append(&[late], at(1)).await.unwrap();
    assert_eq!(refused, [Err(AppendError::Fenced)]);
    assert!(finds(&world, mia, "zombie").await.is_empty());
}

async fn a_title_is_found_as_it_is_now(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let new = NewSession {
        title: Some("First name".into()),
        ..new_session(mia)
    };
    world.store.create_session(&new).await.unwrap();
    assert_eq!(finds(&world, mia, "first").await, [new.id]);
    let title = SessionChange::Title("Second name".into());
    let renamed = world.store.change_session(new.id, mia, &title, at(2)).await;
    assert!(renamed.unwrap());
    assert!(finds(&world, mia, "first").await.is_empty());
    assert_eq!(finds(&world, mia, "second").await, [new.id]);
    // By the agent, with what it did.
    let lease = world.store.claim_journal(new.id, "here").await.unwrap();
    let told = Append {
        summary: Some(Summary {
            title: Some("Third".into()),
            ..Summary::default()
        }),
        ..append(new.id, lease.term, 0, &["a"])
    };
    world.store.append(&[told], at(3)).await.unwrap();
    assert!(finds(&world, mia, "second").await.is_empty());
    assert_eq!(hits(&world, mia, "third").await[0].snippet, "Third");
}

async fn ended_and_removed_sessions_are_not_found_and_archived_ones_are(world: World) {
    let (mia, archived) = owned(&world).await;
    says(&world, archived.id, &["needle"]).await;
    let ended = another(&world, mia, "needle").await;
    let removed = another(&world, mia, "needle").await;
    assert_eq!(finds(&world, mia, "needle").await.len(), 3);
    let away = SessionChange::Archived(true);
    let changed = world.store.change_session(archived.id, mia, &away, at(2));
    assert!(changed.await.unwrap());
    let end = act(Action::SessionEnded, 5);
    assert!(world.store.end_session(ended.id, mia, &end).await.unwrap());
    let expire = act(Action::SessionExpired, 5);
    let gone = world.store.remove_session(removed.id, at(9), &expire).await;
    assert!(gone.unwrap());
    assert_eq!(finds(&world, mia, "needle").await, [archived.id]);
    assert_eq!(kept(&world).await, 2, "those of the ended one leave later");
    assert_eq!(world.store.forget_texts(ended.id).await.unwrap(), 1);
    assert_eq!(kept(&world).await, 1);
    let remove = act(Action::UserRemoved, 6);
    world.store.remove_user(mia, &remove).await.unwrap();
    assert!(finds(&world, mia, "needle").await.is_empty());
    assert_eq!(kept(&world).await, 0);
    assert!(world.store.integrity().await.unwrap().is_empty());
}

async fn what_has_left_the_journal_is_not_found(world: World) {
    let (mia, new) = owned(&world).await;
    says(&world, new.id, &["early", "late"]).await;
    let title = SessionChange::Title("Named".into());
    let renamed = world.store.change_session(new.id, mia, &title, at(2)).await;
    assert!(renamed.unwrap());
    let snapshot = Snapshot {
        offset: 2,
        body: b"{}".to_vec(),
    };
    world.store.save_snapshot(new.id, &snapshot).await.unwrap();
    assert_eq!(world.store.drop_events(new.id, 1).await.unwrap(), 1);
    assert!(finds(&world, mia, "early").await.is_empty());
    assert_eq!(finds(&world, mia, "late").await, [new.id]);
    assert_eq!(finds(&world, mia, "named").await, [new.id]);
}

async fn hits_come_in_pages_like_the_list(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(another(&world, mia, "common word, common").await.id);
    }
    // Of the same moment: the id decides.
    all.sort_unstable();
    all.reverse();
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let words = Words::of("common");
        let page = world.store.search(mia, &words, before, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some((last.row.updated_at, last.row.id));
        seen.extend(page.iter().map(|hit| hit.row.id));
    }
    assert_eq!(seen, all);
}

/// A database that cannot index a text would refuse the events with it.
async fn no_text_is_too_much_to_be_recorded(world: World) {
    const BYTES: usize = 256 * 1024;
    let (mia, new) = owned(&world).await;
    let short: String = (0..)
        .map(|number| format!("{number:x} "))
        .take(BYTES / 6)
        .collect();
    let rare: String = ('\u{4e00}'..'\u{9fff}')
        .chain('\u{ac00}'..'\u{d7a3}')
        .chain('\u{20000}'..'\u{2a6df}')
        .flat_map(|letter| [letter, ' '])
        .collect();
    let texts = [
        short,
        rare,
        "x".repeat(BYTES),
        "- ".repeat(BYTES / 2),
        "a ".repeat(BYTES / 2),
    ];
    let cut = |text: &String| text[..text.floor_char_boundary(BYTES)].to_owned();
    let texts: Vec<String> = texts.iter().map(cut).collect();
    let mut said: Vec<&str> = texts.iter().map(String::as_str).collect();
    said.push("the end");
    says(&world, new.id, &said).await;
    for question in ["ff", "\u{4e01}", "a", "end"] {
        assert_eq!(finds(&world, mia, question).await, [new.id], "{question}");
    }
}

async fn what_is_no_word_to_a_database_does_not_find_everything(world: World) {
    let (mia, plain) = owned(&world).await;
    says(&world, plain.id, &["plain words"]).await;
    let odd = another(&world, mia, "½ cup, x², ① and ➒").await;
    for symbol in ["½", "²", "①", "➒", "½ ①"] {
        let found = finds(&world, mia, symbol).await;
        assert!(!found.contains(&plain.id), "{symbol}");
        let both = finds(&world, mia, &format!("plain {symbol}")).await;
        assert!(both.is_empty(), "{symbol}");
    }
    assert_eq!(finds(&world, mia, "cup").await, [odd.id]);
    assert_eq!(finds(&world, mia, "plain").await, [plain.id]);
}
