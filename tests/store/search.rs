//! Search: words, owners, titles, pages.

use sqlx::{Connection as _, PgConnection, SqliteConnection};
use switchboard::domain::account::Role;
use switchboard::domain::audit::Action;
use switchboard::domain::id::{SessionId, UserId};
use switchboard::domain::search_query::SearchQuery;
use switchboard::store::{
    Append, AppendError, NewSession, SearchHit, SearchText, SessionChange, SessionSummary, Snapshot,
};

use crate::journals::{append, new_session, owned};
use crate::{World, at, entry};

crate::on_both_databases!(
    words_and_prefixes_are_found_in_any_case,
    the_parts_of_a_path_are_words,
    every_word_must_match_but_not_in_one_text,
    no_input_is_interpreted_as_an_operator,
    a_user_cannot_find_another_users_texts,
    texts_of_a_refused_append_are_not_found,
    only_the_current_title_is_found,
    ended_and_removed_sessions_are_not_found_and_archived_ones_are,
    dropped_events_are_not_found,
    hits_come_in_pages_like_the_list,
    every_long_text_can_be_indexed,
    a_symbol_does_not_match_everything,
    parts_of_words_are_found_in_the_newest_texts,
    a_session_has_its_best_passages_with_their_offsets,
);

fn append_with_texts(session: SessionId, term: i64, after: u64, texts: &[&str]) -> Append {
    let text = |(offset, text): (u64, &&str)| SearchText {
        offset,
        text: (*text).to_owned(),
    };
    Append {
        texts: (after + 1..).zip(texts).map(text).collect(),
        ..append(session, term, after, texts)
    }
}

async fn append_texts(world: &World, session: SessionId, texts: &[&str]) {
    let lease = world.store.claim_journal(session, "here").await.unwrap();
    let said = append_with_texts(session, lease.term, lease.head, texts);
    let added = world.store.append(&[said], at(1)).await.unwrap();
    assert_eq!(added, [Ok(())]);
}

async fn session_with_text(world: &World, owner: UserId, text: &str) -> NewSession {
    let new = new_session(owner);
    world.store.create_session(&new).await.unwrap();
    append_texts(world, new.id, &[text]).await;
    new
}

async fn hits(world: &World, owner: UserId, query: &str) -> Vec<SearchHit> {
    let words = SearchQuery::parse(query);
    world.store.search(owner, &words, None, 50).await.unwrap()
}

async fn found_sessions(world: &World, owner: UserId, query: &str) -> Vec<SessionId> {
    let hits = hits(world, owner, query).await;
    hits.into_iter().map(|hit| hit.row.id).collect()
}

/// Number of stored texts: deleted ones must not only be hidden.
async fn count_stored_texts(world: &World) -> i64 {
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

async fn words_and_prefixes_are_found_in_any_case(world: World) {
    let (mia, new) = owned(&world).await;
    append_texts(
        &world,
        new.id,
        &["Why is the Parser slow?", "Because of 42 copies: größer"],
    )
    .await;
    for query in [
        "parser", "PARS", "p", "slow?", "42", "copies", "größer", "größ",
    ] {
        assert_eq!(
            found_sessions(&world, mia, query).await,
            [new.id],
            "{query}"
        );
    }
    for query in ["parsers", "copiesx", "nothing", "ar", "er"] {
        assert!(
            found_sessions(&world, mia, query).await.is_empty(),
            "{query}"
        );
    }
    let found = &hits(&world, mia, "copies").await[0];
    assert_eq!(found.passages[0].snippet, "Because of 42 copies: größer");
    assert_eq!((found.row.id, found.row.head), (new.id, 2));
}

async fn the_parts_of_a_path_are_words(world: World) {
    let (mia, new) = owned(&world).await;
    let text = "see src/session_router.rs:12, mail a@example.org, https://x.example/deep?q=v2 2fa";
    append_texts(&world, new.id, &[text]).await;
    for query in [
        "router",
        "session_router.rs",
        "example",
        "org",
        "deep",
        "q=v2",
        "2fa",
        "12",
    ] {
        assert_eq!(
            found_sessions(&world, mia, query).await,
            [new.id],
            "{query}"
        );
    }
}

async fn every_word_must_match_but_not_in_one_text(world: World) {
    let (mia, first) = owned(&world).await;
    append_texts(
        &world,
        first.id,
        &["alpha beta", "gamma", "alpha gamma delta"],
    )
    .await;
    let second = session_with_text(&world, mia, "alpha").await;
    assert_eq!(found_sessions(&world, mia, "alpha").await.len(), 2);
    assert_eq!(found_sessions(&world, mia, "beta gamma").await, [first.id]);
    assert!(found_sessions(&world, mia, "beta omega").await.is_empty());
    assert_eq!(found_sessions(&world, mia, "alpha ALPHA").await.len(), 2);
    let title = SessionChange::Title("About omega".into());
    let renamed = world.store.change_session(second.id, mia, &title, at(2));
    assert!(renamed.await.unwrap());
    assert_eq!(
        found_sessions(&world, mia, "omega alpha").await,
        [second.id]
    );
    // The snippet comes from the text that matches most words.
    let found = &hits(&world, mia, "delta alpha").await[0];
    assert_eq!(found.passages[0].snippet, "alpha gamma delta");
}

async fn no_input_is_interpreted_as_an_operator(world: World) {
    let (mia, new) = owned(&world).await;
    append_texts(&world, new.id, &["cats and dogs or near not owner text"]).await;
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
    for query in odd {
        // Any result will do; it must not fail.
        hits(&world, mia, query).await;
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
        assert!(found_sessions(&world, mia, none).await.is_empty(), "{none}");
    }
    for one in [
        "cats*",
        "\"cats",
        "'cats'",
        "cats & !dogs",
        "owner : cats",
        "NEAR(cats dogs)",
    ] {
        assert_eq!(found_sessions(&world, mia, one).await, [new.id], "{one}");
    }
    let owner = mia.to_string();
    assert!(found_sessions(&world, mia, &owner).await.is_empty());
    assert!(
        found_sessions(&world, mia, &owner.replace('_', ""))
            .await
            .is_empty()
    );
}

async fn a_user_cannot_find_another_users_texts(world: World) {
    let (mia, new) = owned(&world).await;
    append_texts(&world, new.id, &["a secret plan"]).await;
    let bob = world.user("bob", Role::Member).await;
    let own = session_with_text(&world, bob, "no plan at all").await;
    let odd = [
        "secret",
        "sec",
        "secret OR plan",
        "\"secret\"",
        "text:secret",
        "* OR secret",
    ];
    for query in odd {
        assert!(
            found_sessions(&world, bob, query).await.is_empty(),
            "{query}"
        );
    }
    assert!(
        found_sessions(&world, bob, &format!("{mia} secret"))
            .await
            .is_empty()
    );
    assert_eq!(found_sessions(&world, bob, "plan").await, [own.id]);
    assert_eq!(found_sessions(&world, mia, "plan").await, [new.id]);
}

async fn texts_of_a_refused_append_are_not_found(world: World) {
    let (mia, new) = owned(&world).await;
    let lease = world.store.claim_journal(new.id, "here").await.unwrap();
    let late = append_with_texts(new.id, lease.term - 1, 0, &["zombie"]);
    let refused = world.store.append(&[late], at(1)).await.unwrap();
    assert_eq!(refused, [Err(AppendError::Fenced)]);
    assert!(found_sessions(&world, mia, "zombie").await.is_empty());
}

async fn only_the_current_title_is_found(world: World) {
    let (mia, new) = owned(&world).await;
    // By the agent, with its events.
    let lease = world.store.claim_journal(new.id, "here").await.unwrap();
    for (after, title) in [(0, "First name"), (1, "Second name")] {
        let told = Append {
            summary: Some(SessionSummary {
                title: Some(title.into()),
                ..SessionSummary::default()
            }),
            ..append(new.id, lease.term, after, &["a"])
        };
        world.store.append(&[told], at(3)).await.unwrap();
    }
    assert!(found_sessions(&world, mia, "first").await.is_empty());
    assert_eq!(found_sessions(&world, mia, "second").await, [new.id]);
    // By its owner.
    let title = SessionChange::Title("Third".into());
    let renamed = world.store.change_session(new.id, mia, &title, at(2)).await;
    assert!(renamed.unwrap());
    assert!(found_sessions(&world, mia, "second").await.is_empty());
    let passages = &hits(&world, mia, "third").await[0].passages;
    assert_eq!(
        (passages[0].offset, passages[0].snippet.as_str()),
        (0, "Third")
    );
}

async fn ended_and_removed_sessions_are_not_found_and_archived_ones_are(world: World) {
    let (mia, archived) = owned(&world).await;
    append_texts(&world, archived.id, &["needle"]).await;
    let ended = session_with_text(&world, mia, "needle").await;
    let removed = session_with_text(&world, mia, "needle").await;
    assert_eq!(found_sessions(&world, mia, "needle").await.len(), 3);
    let away = SessionChange::Archived(true);
    let changed = world.store.change_session(archived.id, mia, &away, at(2));
    assert!(changed.await.unwrap());
    let end = entry(Action::SessionEnded, 5);
    assert!(world.store.end_session(ended.id, mia, &end).await.unwrap());
    let expire = entry(Action::SessionExpired, 5);
    let gone = world.store.remove_session(removed.id, at(9), &expire).await;
    assert!(gone.unwrap());
    assert_eq!(found_sessions(&world, mia, "needle").await, [archived.id]);
    assert_eq!(
        count_stored_texts(&world).await,
        2,
        "texts of the ended session are removed later"
    );
    assert_eq!(world.store.remove_text_batch(ended.id).await.unwrap(), 1);
    assert_eq!(count_stored_texts(&world).await, 1);
    let remove = entry(Action::UserRemoved, 6);
    world.store.remove_user(mia, &remove).await.unwrap();
    assert!(found_sessions(&world, mia, "needle").await.is_empty());
    assert_eq!(count_stored_texts(&world).await, 0);
    assert!(world.store.integrity().await.unwrap().is_empty());
}

async fn dropped_events_are_not_found(world: World) {
    let (mia, new) = owned(&world).await;
    append_texts(&world, new.id, &["early", "late"]).await;
    let title = SessionChange::Title("Named".into());
    let renamed = world.store.change_session(new.id, mia, &title, at(2)).await;
    assert!(renamed.unwrap());
    let snapshot = Snapshot {
        offset: 2,
        body: b"{}".to_vec(),
    };
    world.store.save_snapshot(new.id, &snapshot).await.unwrap();
    assert_eq!(world.store.drop_events(new.id, 1).await.unwrap(), 1);
    assert!(found_sessions(&world, mia, "early").await.is_empty());
    assert_eq!(found_sessions(&world, mia, "late").await, [new.id]);
    assert_eq!(found_sessions(&world, mia, "named").await, [new.id]);
}

async fn hits_come_in_pages_like_the_list(world: World) {
    let mia = world.user("mia", Role::Member).await;
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(
            session_with_text(&world, mia, "common word, common")
                .await
                .id,
        );
    }
    // Equal times: the id decides.
    all.sort_unstable();
    all.reverse();
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let words = SearchQuery::parse("common");
        let page = world.store.search(mia, &words, before, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some((last.row.updated_at, last.row.id));
        seen.extend(page.iter().map(|hit| hit.row.id));
    }
    assert_eq!(seen, all);
}

/// A text that cannot be indexed would fail its append.
async fn every_long_text_can_be_indexed(world: World) {
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
    append_texts(&world, new.id, &said).await;
    for query in ["ff", "\u{4e01}", "a", "end"] {
        assert_eq!(
            found_sessions(&world, mia, query).await,
            [new.id],
            "{query}"
        );
    }
}

async fn a_symbol_does_not_match_everything(world: World) {
    let (mia, plain) = owned(&world).await;
    append_texts(&world, plain.id, &["plain words"]).await;
    let odd = session_with_text(&world, mia, "½ cup, x², ① and ➒").await;
    for symbol in ["½", "²", "①", "➒", "½ ①"] {
        let found = found_sessions(&world, mia, symbol).await;
        assert!(!found.contains(&plain.id), "{symbol}");
        let both = found_sessions(&world, mia, &format!("plain {symbol}")).await;
        assert!(both.is_empty(), "{symbol}");
    }
    assert_eq!(found_sessions(&world, mia, "cup").await, [odd.id]);
    assert_eq!(found_sessions(&world, mia, "plain").await, [plain.id]);
}

async fn parts_of_words_are_found_in_the_newest_texts(world: World) {
    let (mia, new) = owned(&world).await;
    let texts = ["Fix getUserName in der Befehlszeile", "ÄRGER mit der Größe"];
    append_texts(&world, new.id, &texts).await;
    let leo = world.user("leo", Role::Member).await;
    for query in [
        "username",
        "SERNA",
        "zeile",
        "rger",
        "ärg",
        "röße",
        "fix zeile",
    ] {
        let found = found_sessions(&world, mia, query).await;
        assert_eq!(found, [new.id], "{query}");
        assert!(found_sessions(&world, leo, query).await.is_empty());
    }
    for query in ["zeilen", "usernames", "%", "_zzz%"] {
        let found = found_sessions(&world, mia, query).await;
        assert!(found.is_empty(), "{query}");
    }
}

async fn a_session_has_its_best_passages_with_their_offsets(world: World) {
    let (mia, new) = owned(&world).await;
    let texts = [
        "alpha one",
        "beta",
        "alpha two beta",
        "nothing",
        "alpha three",
    ];
    append_texts(&world, new.id, &texts).await;
    let title = SessionChange::Title("All about alpha".into());
    let renamed = world.store.change_session(new.id, mia, &title, at(2));
    assert!(renamed.await.unwrap());
    let found = hits(&world, mia, "alpha beta").await;
    assert_eq!(found.len(), 1);
    let offsets: Vec<u64> = found[0].passages.iter().map(|hit| hit.offset).collect();
    assert_eq!(offsets[0], 3, "the one with both words: {offsets:?}");
    let mut all = offsets.clone();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 5]);
    for number in 0..20 {
        append_texts(&world, new.id, &[format!("alpha {number}").as_str()]).await;
    }
    assert_eq!(hits(&world, mia, "alpha").await[0].passages.len(), 5);
}
