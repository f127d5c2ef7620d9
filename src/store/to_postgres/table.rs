//! The tables that are moved, as both databases describe them.

use super::{AssertSqlSafe, BTreeSet, HashSet, MoveError, PgConnection, SqliteConnection};
use sqlx::Row as _;

/// What each database has for itself, and what follows from the rest: its version, where it is at
/// home, SQLite's log of events (empty by now) and its index of words.
const NOT_MOVED: [&str; 4] = ["_sqlx_migrations", "store_home", "journal_log", "scrap"];
const INDEX: &str = "session_words";

/// A column, and what is in it.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Truth,
    Bytes,
}

impl Kind {
    fn of(postgres: &str) -> Option<Self> {
        match postgres {
            "text" => Some(Self::Text),
            "bigint" => Some(Self::Number),
            "boolean" => Some(Self::Truth),
            "bytea" => Some(Self::Bytes),
            _ => None,
        }
    }

    fn array(self) -> &'static str {
        match self {
            Self::Text => "text[]",
            Self::Number => "bigint[]",
            Self::Truth => "boolean[]",
            Self::Bytes => "bytea[]",
        }
    }
}

/// One table.
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// The column that the database numbers by itself.
    numbered: Option<String>,
}

/// The names of all tables that are moved, each behind those that it refers to.
pub(super) async fn names(source: &mut SqliteConnection) -> sqlx::Result<Vec<String>> {
    let all: Vec<String> = sqlx::query_scalar(
        "select name from sqlite_schema where type = 'table' and name not like 'sqlite%' order by name",
    )
    .fetch_all(&mut *source)
    .await?;
    let mut left: Vec<(String, HashSet<String>)> = Vec::new();
    for name in all {
        if NOT_MOVED.contains(&name.as_str()) || name.starts_with(INDEX) {
            continue;
        }
        let before: Vec<String> =
            sqlx::query_scalar("select \"table\" from pragma_foreign_key_list($1)")
                .bind(&name)
                .fetch_all(&mut *source)
                .await?;
        let before = before.into_iter().filter(|other| *other != name).collect();
        left.push((name, before));
    }
    let mut ordered: Vec<String> = Vec::new();
    while let Some(next) = left
        .iter()
        .position(|(_, before)| before.iter().all(|name| ordered.contains(name)))
    {
        ordered.push(left.remove(next).0);
    }
    assert!(
        left.is_empty(),
        "tables do not refer to each other in a circle"
    );
    Ok(ordered)
}

impl Table {
    /// A table as it is on both sides.
    pub(super) async fn of(
        name: &str,
        source: &mut SqliteConnection,
        there: &mut PgConnection,
    ) -> Result<Self, MoveError> {
        let differs = |why: String| MoveError::Schema {
            table: name.to_owned(),
            why,
        };
        let here: BTreeSet<String> = sqlx::query_scalar("select name from pragma_table_info($1)")
            .bind(name)
            .fetch_all(source)
            .await?
            .into_iter()
            .collect();
        let rows = sqlx::query(
            "select column_name::text as name, data_type::text as kind, is_identity = 'YES' as numbered
             from information_schema.columns
             where table_schema = current_schema() and table_name = $1 and is_generated = 'NEVER'
             order by ordinal_position",
        )
        .bind(name)
        .fetch_all(there)
        .await?;
        let (mut columns, mut numbered) = (Vec::new(), None);
        for row in &rows {
            let (name, kind): (String, String) = (row.try_get("name")?, row.try_get("kind")?);
            if row.try_get("numbered")? {
                numbered = Some(name.clone());
            }
            let kind =
                Kind::of(&kind).ok_or_else(|| differs(format!("{name} is of the type {kind}")))?;
            columns.push(Column { name, kind });
        }
        let names: BTreeSet<String> = columns.iter().map(|column| column.name.clone()).collect();
        if let Some(one) = here.symmetric_difference(&names).next() {
            return Err(differs(format!("only one has the column {one}")));
        }
        Ok(Self {
            name: name.to_owned(),
            columns,
            numbered,
        })
    }

    fn names(&self) -> String {
        let quoted: Vec<String> = self
            .columns
            .iter()
            .map(|column| format!("\"{}\"", column.name))
            .collect();
        quoted.join(", ")
    }

    pub(super) fn select(&self) -> String {
        format!("select {} from {}", self.names(), self.name)
    }

    /// Takes each column as one list.
    pub(super) fn insert(&self) -> String {
        let lists: Vec<String> = self
            .columns
            .iter()
            .enumerate()
            .map(|(place, column)| format!("${}::{}", place + 1, column.kind.array()))
            .collect();
        format!(
            "insert into {} ({}) overriding system value select * from unnest({})",
            self.name,
            self.names(),
            lists.join(", ")
        )
    }

    /// Numbers that were given are not given again, also if their rows are gone.
    pub(super) async fn continue_numbers(
        &self,
        source: &mut SqliteConnection,
        there: &mut PgConnection,
    ) -> Result<(), MoveError> {
        let Some(column) = &self.numbered else {
            return Ok(());
        };
        let given: Option<i64> =
            sqlx::query_scalar("select max(seq) from sqlite_sequence where name = $1")
                .bind(&self.name)
                .fetch_one(source)
                .await?;
        let newest = format!("select max({column}) from {}", self.name);
        let newest: Option<i64> = sqlx::query_scalar(AssertSqlSafe(newest))
            .fetch_one(&mut *there)
            .await?;
        if let Some(last) = given.max(newest).filter(|last| *last > 0) {
            sqlx::query("select setval(pg_get_serial_sequence($1, $2), $3)")
                .bind(&self.name)
                .bind(column)
                .bind(last)
                .execute(there)
                .await?;
        }
        Ok(())
    }
}
