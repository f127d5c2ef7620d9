//! Tables to move, as both databases describe them.

use super::{AssertSqlSafe, BTreeSet, HashSet, MoveError, PgConnection, SqliteConnection};
use sqlx::Row as _;

/// Not moved: the schema version, the identity, SQLite's commit log (empty by now) and its scrub
/// table; and the search index, which is derived.
const SKIPPED_TABLES: [&str; 4] = ["_sqlx_migrations", "store_home", "journal_log", "scrap"];
const SEARCH_INDEX: &str = "session_words";

pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
    Boolean,
    Bytes,
}

impl Kind {
    fn of(postgres: &str) -> Option<Self> {
        match postgres {
            "text" => Some(Self::Text),
            "bigint" => Some(Self::Integer),
            "boolean" => Some(Self::Boolean),
            "bytea" => Some(Self::Bytes),
            _ => None,
        }
    }

    fn array(self) -> &'static str {
        match self {
            Self::Text => "text[]",
            Self::Integer => "bigint[]",
            Self::Boolean => "boolean[]",
            Self::Bytes => "bytea[]",
        }
    }
}

pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    sequence_column: Option<String>,
}

/// Names of the tables to move, each after those it refers to.
pub(super) async fn names(source: &mut SqliteConnection) -> sqlx::Result<Vec<String>> {
    let all: Vec<String> = sqlx::query_scalar(
        "select name from sqlite_schema where type = 'table' and name not like 'sqlite%' order by name",
    )
    .fetch_all(&mut *source)
    .await?;
    let mut remaining: Vec<(String, HashSet<String>)> = Vec::new();
    for name in all {
        if SKIPPED_TABLES.contains(&name.as_str()) || name.starts_with(SEARCH_INDEX) {
            continue;
        }
        let references: Vec<String> =
            sqlx::query_scalar("select \"table\" from pragma_foreign_key_list($1)")
                .bind(&name)
                .fetch_all(&mut *source)
                .await?;
        let references = references
            .into_iter()
            .filter(|other| *other != name)
            .collect();
        remaining.push((name, references));
    }
    let mut ordered: Vec<String> = Vec::new();
    while let Some(next) = remaining
        .iter()
        .position(|(_, references)| references.iter().all(|name| ordered.contains(name)))
    {
        ordered.push(remaining.remove(next).0);
    }
    assert!(
        remaining.is_empty(),
        "tables do not refer to each other in a circle"
    );
    Ok(ordered)
}

impl Table {
    /// Reads the columns on both sides.
    pub(super) async fn of(
        name: &str,
        source: &mut SqliteConnection,
        target: &mut PgConnection,
    ) -> Result<Self, MoveError> {
        let differs = |why: String| MoveError::Schema {
            table: name.to_owned(),
            why,
        };
        let source_columns: BTreeSet<String> =
            sqlx::query_scalar("select name from pragma_table_info($1)")
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
        .fetch_all(target)
        .await?;
        let (mut columns, mut sequence_column) = (Vec::new(), None);
        for row in &rows {
            let (name, kind): (String, String) = (row.try_get("name")?, row.try_get("kind")?);
            if row.try_get("numbered")? {
                sequence_column = Some(name.clone());
            }
            let kind =
                Kind::of(&kind).ok_or_else(|| differs(format!("{name} is of the type {kind}")))?;
            columns.push(Column { name, kind });
        }
        let names: BTreeSet<String> = columns.iter().map(|column| column.name.clone()).collect();
        if let Some(one) = source_columns.symmetric_difference(&names).next() {
            return Err(differs(format!("only one has the column {one}")));
        }
        Ok(Self {
            name: name.to_owned(),
            columns,
            sequence_column,
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

    /// Binds each column as one array.
    pub(super) fn insert(&self) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .enumerate()
            .map(|(index, column)| format!("${}::{}", index + 1, column.kind.array()))
            .collect();
        format!(
            "insert into {} ({}) overriding system value select * from unnest({})",
            self.name,
            self.names(),
            columns.join(", ")
        )
    }

    /// Ids are never reused, even if their rows are gone.
    pub(super) async fn advance_sequence(
        &self,
        source: &mut SqliteConnection,
        target: &mut PgConnection,
    ) -> Result<(), MoveError> {
        let Some(column) = &self.sequence_column else {
            return Ok(());
        };
        let issued: Option<i64> =
            sqlx::query_scalar("select max(seq) from sqlite_sequence where name = $1")
                .bind(&self.name)
                .fetch_one(source)
                .await?;
        let newest = format!("select max({column}) from {}", self.name);
        let newest: Option<i64> = sqlx::query_scalar(AssertSqlSafe(newest))
            .fetch_one(&mut *target)
            .await?;
        if let Some(last) = issued.max(newest).filter(|last| *last > 0) {
            sqlx::query("select setval(pg_get_serial_sequence($1, $2), $3)")
                .bind(&self.name)
                .bind(column)
                .bind(last)
                .execute(target)
                .await?;
        }
        Ok(())
    }
}
