//! Rows in transit: cell values, their checksum, and insert batches.

use std::fmt::Write as _;

use aws_lc_rs::digest;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::table::{Column, Kind};

const BATCH_ROWS: u64 = 1_000;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

pub(super) enum Cell {
    Text(Option<String>),
    Integer(Option<i64>),
    Boolean(Option<bool>),
    Bytes(Option<Vec<u8>>),
}

/// One function per database: their row types have no common trait.
macro_rules! row_reader {
    ($name:ident, $row:ty) => {
        pub(super) fn $name(row: &$row, columns: &[Column]) -> sqlx::Result<Vec<Cell>> {
            let read = |(index, column): (usize, &Column)| {
                Ok(match column.kind {
                    Kind::Text => Cell::Text(row.try_get(index)?),
                    Kind::Integer => Cell::Integer(row.try_get(index)?),
                    Kind::Boolean => Cell::Boolean(row.try_get(index)?),
                    Kind::Bytes => Cell::Bytes(row.try_get(index)?),
                })
            };
            columns.iter().enumerate().map(read).collect()
        }
    };
}
row_reader!(from_sqlite, SqliteRow);
row_reader!(from_postgres, PgRow);

impl Cell {
    fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.as_ref().map_or(0, String::len),
            Self::Bytes(bytes) => bytes.as_ref().map_or(0, Vec::len),
            Self::Integer(_) | Self::Boolean(_) => 8,
        }
    }

    fn digest(&self, context: &mut digest::Context) {
        let number;
        let bytes = match self {
            Self::Text(text) => text.as_ref().map(String::as_bytes),
            Self::Bytes(bytes) => bytes.as_deref(),
            Self::Integer(None) | Self::Boolean(None) => None,
            Self::Integer(Some(value)) => {
                number = value.to_le_bytes();
                Some(&number[..])
            }
            Self::Boolean(Some(value)) => {
                number = i64::from(*value).to_le_bytes();
                Some(&number[..])
            }
        };
        // Length-prefixed, so that cells cannot run into each other.
        match bytes {
            None => context.update(&u64::MAX.to_le_bytes()),
            Some(bytes) => {
                context.update(&(bytes.len() as u64).to_le_bytes());
                context.update(bytes);
            }
        }
    }
}

/// Order-independent checksum: the two databases sort text differently.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TableChecksum {
    pub(super) rows: u64,
    sums: [u64; 4],
}

impl TableChecksum {
    pub(super) fn add(&mut self, cells: &[Cell]) {
        let mut context = digest::Context::new(&digest::SHA256);
        for cell in cells {
            cell.digest(&mut context);
        }
        let digest = context.finish();
        for (sum, part) in self.sums.iter_mut().zip(digest.as_ref().chunks_exact(8)) {
            let part = u64::from_le_bytes(part.try_into().expect("eight bytes"));
            *sum = sum.wrapping_add(part);
        }
        self.rows += 1;
    }

    pub(super) fn checksum(&self) -> String {
        self.sums.iter().fold(String::new(), |mut text, sum| {
            write!(text, "{sum:016x}").expect("a string takes it");
            text
        })
    }
}

enum ColumnValues {
    Text(Vec<Option<String>>),
    Integer(Vec<Option<i64>>),
    Boolean(Vec<Option<bool>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

pub(super) struct Batch {
    columns: Vec<ColumnValues>,
    rows: u64,
    bytes: usize,
    pub(super) inserted: u64,
}

impl Batch {
    pub(super) fn new(columns: &[Column]) -> Self {
        let column = |column: &Column| match column.kind {
            Kind::Text => ColumnValues::Text(Vec::new()),
            Kind::Integer => ColumnValues::Integer(Vec::new()),
            Kind::Boolean => ColumnValues::Boolean(Vec::new()),
            Kind::Bytes => ColumnValues::Bytes(Vec::new()),
        };
        Self {
            columns: columns.iter().map(column).collect(),
            rows: 0,
            bytes: 0,
            inserted: 0,
        }
    }

    pub(super) fn push(&mut self, cells: Vec<Cell>) {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            self.bytes += cell.size();
            match (column, cell) {
                (ColumnValues::Text(column), Cell::Text(cell)) => column.push(cell),
                (ColumnValues::Integer(column), Cell::Integer(cell)) => column.push(cell),
                (ColumnValues::Boolean(column), Cell::Boolean(cell)) => column.push(cell),
                (ColumnValues::Bytes(column), Cell::Bytes(cell)) => column.push(cell),
                _ => unreachable!("both follow the columns"),
            }
        }
        self.rows += 1;
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    /// Inserts the rows and clears the batch.
    pub(super) async fn insert(
        &mut self,
        statement: &str,
        target: &mut PgConnection,
    ) -> sqlx::Result<()> {
        self.inserted = self.rows;
        if self.rows == 0 {
            return Ok(());
        }
        let mut query = sqlx::query(AssertSqlSafe(statement.to_owned()));
        for column in &mut self.columns {
            query = match column {
                ColumnValues::Text(column) => query.bind(std::mem::take(column)),
                ColumnValues::Integer(column) => query.bind(std::mem::take(column)),
                ColumnValues::Boolean(column) => query.bind(std::mem::take(column)),
                ColumnValues::Bytes(column) => query.bind(std::mem::take(column)),
            };
        }
        query.execute(target).await?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}
