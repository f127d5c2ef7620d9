//! Statements for search.

use std::sync::LazyLock;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use jiff::Timestamp;
use sqlx::Row as _;

use super::journals::as_i64;
use super::{
    Backend, Connection, JOIN_MATCHING, QUERY_WORDS, bulk_statement, millis, owner_filter,
    prefix_term,
};
use crate::domain::id::{SessionId, UserId};
use crate::domain::search_query::SearchQuery;
use crate::store::error::StoreError;
use crate::store::journals::Append;
use crate::store::search::{Search, SearchHit, SearchText};

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
/// must have them all. Only the texts of the page are read.
static FIND: LazyLock<String> = LazyLock::new(|| {
    format!(
        "with wish as ({QUERY_WORDS}),
         hits as (
             select wish.word, session_texts.session_id, session_texts.id
             from wish {JOIN_MATCHING}
         ),
         found as (
             select session_id from hits group by session_id having count(distinct word) = $3
         ),
         best as (
             select session_id, id,
                 row_number() over (partition by session_id order by count(*) desc, id desc) as place
             from hits group by session_id, id
         ),
         page as (
             select sessions.id as session_id, best.id as text_id
             from sessions
                 join found on found.session_id = sessions.id
                 join best on best.session_id = sessions.id and best.place = 1
             where owner_id = $4 and ended_at is null
                 and (updated_at < $5 or (updated_at = $5 and sessions.id < $6))
             order by updated_at desc, sessions.id desc limit $7
         )
         select sessions.id, sessions.owner_id, sessions.agent, sessions.title, sessions.epoch, sessions.head,
                 sessions.messages, sessions.last_prompt, sessions.running, sessions.waiting, sessions.queued,
                 sessions.control, sessions.created_at, sessions.updated_at, sessions.archived_at, sessions.ended_at, users.username as owner_name, null as granted,
             session_texts.text as hit, (
             select max(\"offset\") from journal_events where session_id = sessions.id
         ) as newest
         from page
             join sessions on sessions.id = page.session_id
             join users on users.id = sessions.owner_id
             join session_texts on session_texts.id = page.text_id
         order by sessions.updated_at desc, sessions.id desc"
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
        let terms: Vec<String> = words.words().map(prefix_term).collect();
        let terms = serde_json::to_string(&terms).expect("words are plain JSON");
        let mut rows = sqlx::query(FIND.as_str())
            .bind(terms)
            .bind(owner_filter(&owner_word(owner)))
            .bind(as_i64(words.len() as u64))
            .bind(owner.to_string())
            .bind(at)
            .bind(id)
            .bind(i64::from(limit))
            .fetch(self.searcher());
        let mut hits = Vec::new();
        // Streamed: a text may be long, and only an excerpt is kept.
        while let Some(row) = rows.try_next().await? {
            let text: &str = row.try_get("hit")?;
            hits.push(SearchHit {
                snippet: words.excerpt(text),
                row: self.session_row(&row)?,
            });
        }
        Ok(hits)
    }
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
