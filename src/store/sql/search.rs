//! Statements about what sessions are found by.

use std::sync::LazyLock;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use jiff::Timestamp;
use sqlx::Row as _;

use super::journals::number_of;
use super::{Backend, Connection, MATCHING, WISHED_WORDS, millis, owned_by, rows, word_beginning};
use crate::domain::id::{SessionId, UserId};
use crate::domain::search::Words;
use crate::store::error::StoreError;
use crate::store::journals::Append;
use crate::store::search::{Hit, Search, SearchText};

/// Texts of one statement: each may be long.
const TEXTS: usize = 64;

static INSERT_TEXTS: rows::Shape = rows::Shape::new(
    "with wish (id, place, text) as (values ",
    &["text", "bigint", "text"],
    &[
        ") insert into session_texts (session_id, owner, \"offset\", text)
       select sessions.id, replace(sessions.owner_id, '_', ''), wish.place, wish.text
       from wish join sessions on sessions.id = wish.id",
    ],
);

/// Each word is looked for by itself, since one may stand in the title and another in an answer; a
/// session is found if it has them all. Only the texts of the page are read.
static FIND: LazyLock<String> = LazyLock::new(|| {
    format!(
        "with wish as ({WISHED_WORDS}),
         hits as (
             select wish.word, session_texts.session_id, session_texts.id
             from wish {MATCHING}
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
        words: &Words,
        before: Option<(Timestamp, SessionId)>,
        limit: u32,
    ) -> Result<Vec<Hit>, StoreError> {
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let (at, id) = before.map_or((i64::MAX, String::new()), |(at, id)| {
            (millis(at), id.to_string())
        });
        let wished: Vec<String> = words.iter().map(word_beginning).collect();
        let wished = serde_json::to_string(&wished).expect("words are plain JSON");
        let mut rows = sqlx::query(FIND.as_str())
            .bind(wished)
            .bind(owned_by(&owner_word(owner)))
            .bind(number_of(words.len() as u64))
            .bind(owner.to_string())
            .bind(at)
            .bind(id)
            .bind(i64::from(limit))
            .fetch(self.searcher());
        let mut hits = Vec::new();
        // One by one: a text may be long, and only a line of it is needed.
        while let Some(row) = rows.try_next().await? {
            let text: &str = row.try_get("hit")?;
            hits.push(Hit {
                snippet: words.excerpt(text),
                row: self.session_row(&row)?,
            });
        }
        Ok(hits)
    }
}

/// An owner as one word of the index.
fn owner_word(owner: UserId) -> String {
    owner.to_string().replace('_', "")
}

/// Adds what the sessions of these appends shall be found by. Most appends have nothing of it, and
/// cost nothing here.
pub(super) async fn index(connection: &mut Connection, added: &[&Append]) -> sqlx::Result<()> {
    let texts: Vec<(SessionId, &SearchText)> = added
        .iter()
        .flat_map(|append| append.texts.iter().map(|text| (append.session, text)))
        .collect();
    for part in texts.chunks(TEXTS) {
        let mut statement = sqlx::query(INSERT_TEXTS.statement(part.len()));
        for text in rows::padded(part) {
            statement = statement
                .bind(text.map(|(session, _)| session.to_string()))
                .bind(text.map(|(_, text)| number_of(text.offset)))
                .bind(text.map(|(_, text)| text.text.clone()));
        }
        statement.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Drops the texts of events that leave: up to an offset, as far as a snapshot stands for them. The
/// title stays.
pub(super) async fn forget_upto(
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
    .bind(number_of(upto))
    .execute(connection)
    .await?;
    Ok(())
}
