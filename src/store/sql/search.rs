//! Statements for search.

use std::sync::LazyLock;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use jiff::Timestamp;
use serde_json::{Value, json};
use sqlx::Row as _;

use super::journals::as_i64;
use super::sessions::count;
use super::{
    Backend, CONTAINS_PART, Connection, JOIN_MATCHING, QUERY_WORDS, bulk_statement, millis,
    owner_filter, parsed, prefix_term,
};
use crate::domain::id::{SessionId, UserId};
use crate::domain::search_query::SearchQuery;
use crate::store::error::StoreError;
use crate::store::journals::Append;
use crate::store::search::{Passage, Search, SearchHit, SearchText};

/// Passages per session.
const PASSAGES: usize = 5;
/// How many of the newest texts are searched for parts of words, and how much of each: this part has no
/// index.
const PART_TEXTS: usize = 4_000;
const PART_CHARS: usize = 32_000;
/// Shorter words are looked for as the beginnings of words only.
const MIN_PART_CHARS: usize = 3;
/// Texts per statement: each may be long.
const TEXT_BATCH: usize = 64;

static INSERT_TEXTS: bulk_statement::BulkStatement = bulk_statement::BulkStatement::new(
    "with wish (id, place, text) as (values ",
    &["text", "bigint", "text"],
    &[
        ") insert into session_texts (session_id, owner, \"offset\", text)
       select sessions.id, replace(sessions.owner_id, '_', ''), wish.place, wish.text
       from wish join sessions on sessions.id = wish.id",
    ],
);

/// Matches each word separately, since one may be in the title and another in an answer; a session
/// must have them all. The index finds the beginnings of words; parts of words are looked for in the
/// beginnings of the newest texts. Only the texts of the page are read as a whole.
static FIND: LazyLock<String> = LazyLock::new(|| {
    format!(
        "with wish as ({QUERY_WORDS}),
         recent as (
             select id, session_id, lower(substr(text, 1, {PART_CHARS})) as text
             from session_texts where owner = $8 order by id desc limit {PART_TEXTS}
         ),
         hits as (
             select wish.word, session_texts.session_id, session_texts.id
             from wish {JOIN_MATCHING}
             union
             select wish.word, recent.session_id, recent.id
             from wish join recent on wish.part <> '' and {CONTAINS_PART}
         ),
         found as (
             select session_id from hits group by session_id having count(distinct word) = $3
         ),
         page as (
             select sessions.id as session_id
             from sessions join found on found.session_id = sessions.id
             where owner_id = $4 and ended_at is null
                 and (updated_at < $5 or (updated_at = $5 and sessions.id < $6))
             order by updated_at desc, sessions.id desc limit $7
         ),
         best as (
             select hits.session_id, id,
                 row_number() over (
                     partition by hits.session_id order by count(*) desc, id desc
                 ) as place
             from hits join page on page.session_id = hits.session_id
             group by hits.session_id, id
         )
         select sessions.id, sessions.owner_id, sessions.agent, sessions.title, sessions.epoch, sessions.head,
                 sessions.messages, sessions.last_prompt, sessions.first_prompt, sessions.branched_from, sessions.running, sessions.waiting, sessions.queued,
                 sessions.control, sessions.created_at, sessions.updated_at, sessions.archived_at, sessions.ended_at, users.username as owner_name, null as granted,
             null as read_upto, (
             select count(*) from session_grants where session_grants.session_id = sessions.id
         ) as shared_with, session_texts.text as hit, session_texts.\"offset\" as hit_offset, (
             select max(\"offset\") from journal_events where session_id = sessions.id
         ) as newest
         from best
             join sessions on sessions.id = best.session_id
             join users on users.id = sessions.owner_id
             join session_texts on session_texts.id = best.id
         where best.place <= {PASSAGES}
         order by sessions.updated_at desc, sessions.id desc, best.place"
    )
});

#[async_trait]
impl Search for Backend {
    async fn search(
        &self,
        owner: UserId,
        words: &SearchQuery,
        before: Option<(Timestamp, SessionId)>,
        limit: u32,
    ) -> Result<Vec<SearchHit>, StoreError> {
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let (at, id) = before.map_or((i64::MAX, String::new()), |(at, id)| {
            (millis(at), id.to_string())
        });
        let terms: Vec<Value> = words.words().map(term).collect();
        let mut rows = sqlx::query(FIND.as_str())
            .bind(Value::from(terms).to_string())
            .bind(owner_filter(&owner_word(owner)))
            .bind(as_i64(words.len() as u64))
            .bind(owner.to_string())
            .bind(at)
            .bind(id)
            .bind(i64::from(limit))
            .bind(owner_word(owner))
            .fetch(self.searcher());
        let mut hits: Vec<SearchHit> = Vec::new();
        // Streamed: a text may be long, and only an excerpt is kept.
        while let Some(row) = rows.try_next().await? {
            let text: &str = row.try_get("hit")?;
            let passage = Passage {
                offset: count(&row, "hit_offset")?,
                snippet: words.excerpt(text),
            };
            let session: SessionId = parsed(&row, "id")?;
            match hits.last_mut().filter(|hit| hit.row.id == session) {
                Some(hit) => hit.passages.push(passage),
                None => hits.push(SearchHit {
                    row: self.session_row(&row)?,
                    passages: vec![passage],
                }),
            }
        }
        Ok(hits)
    }
}

/// A word of the query: for the index, and as a part of a word unless it is too short for that.
fn term(word: &str) -> Value {
    let part = Some(word).filter(|word| word.chars().count() >= MIN_PART_CHARS);
    let part = part.unwrap_or_default();
    let upper = part.to_uppercase().to_ascii_lowercase();
    json!({ "word": prefix_term(word), "part": part, "upper": upper })
}

fn owner_word(owner: UserId) -> String {
    owner.to_string().replace('_', "")
}

/// Inserts the search texts of these appends. Most have none and cost nothing.
pub(super) async fn index(connection: &mut Connection, added: &[&Append]) -> sqlx::Result<()> {
    let texts: Vec<(SessionId, &SearchText)> = added
        .iter()
        .flat_map(|append| append.texts.iter().map(|text| (append.session, text)))
        .collect();
    for part in texts.chunks(TEXT_BATCH) {
        let mut statement = sqlx::query(INSERT_TEXTS.statement(part.len()));
        for text in bulk_statement::padded(part) {
            statement = statement
                .bind(text.map(|(session, _)| session.to_string()))
                .bind(text.map(|(_, text)| as_i64(text.offset)))
                .bind(text.map(|(_, text)| text.text.clone()));
        }
        statement.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Drops the texts of events up to an offset, as far as a snapshot covers them. The title stays.
pub(super) async fn drop_texts_upto(
    connection: &mut Connection,
    session: SessionId,
    upto: u64,
) -> sqlx::Result<()> {
    sqlx::query(
        "delete from session_texts
         where session_id = $1 and \"offset\" > 0 and \"offset\" <= $2
             and \"offset\" <= (select \"offset\" from session_snapshots where session_id = $1)",
    )
    .bind(session.to_string())
    .bind(as_i64(upto))
    .execute(connection)
    .await?;
    Ok(())
}
