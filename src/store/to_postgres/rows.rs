//! What stands in one place of a table, on its way from one database to the other.

use std::fmt::Write as _;

use aws_lc_rs::digest;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::table::{Column, Kind};

const ROWS: u64 = 1_000;
const BYTES: usize = 4 * 1024 * 1024;

pub(super) enum Cell {
    Text(Option<String>),
    Number(Option<i64>),
    Truth(Option<bool>),
    Bytes(Option<Vec<u8>>),
}

/// A function for each database: the two have no row in common.
macro_rules! reading {
    ($name:ident, $row:ty) => {
        pub(super) fn $name(row: &$row, columns: &[Column]) -> sqlx::Result<Vec<Cell>> {
            let read = |(place, column): (usize, &Column)| {
                Ok(match column.kind {
                    Kind::Text => Cell::Text(row.try_get(place)?),
                    Kind::Number => Cell::Number(row.try_get(place)?),
                    Kind::Truth => Cell::Truth(row.try_get(place)?),
                    Kind::Bytes => Cell::Bytes(row.try_get(place)?),
                })
            };
            columns.iter().enumerate().map(read).collect()
        }
    };
}
reading!(of_sqlite, SqliteRow);
reading!(of_postgres, PgRow);

impl Cell {
    fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.as_ref().map_or(0, String::len),
            Self::Bytes(bytes) => bytes.as_ref().map_or(0, Vec::len),
            Self::Number(_) | Self::Truth(_) => 8,
        }
    }

    fn digest(&self, context: &mut digest::Context) {
        let number;
        let bytes = match self {
            Self::Text(text) => text.as_ref().map(String::as_bytes),
            Self::Bytes(bytes) => bytes.as_deref(),
            Self::Number(None) | Self::Truth(None) => None,
            Self::Number(Some(value)) => {
                number = value.to_le_bytes();
                Some(&number[..])
            }
            Self::Truth(Some(value)) => {
                number = i64::from(*value).to_le_bytes();
                Some(&number[..])
            }
        };
        // With its length in front, so that nothing can move from one cell into the next.
        match bytes {
            None => context.update(&u64::MAX.to_le_bytes()),
            Some(bytes) => {
                context.update(&(bytes.len() as u64).to_le_bytes());
                context.update(bytes);
            }
        }
    }
}

/// What rows come to, whatever their order: the two databases sort text differently.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) rows: u64,
    sums: [u64; 4],
}

impl Tally {
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

/// One column of the rows that are written together.
enum List {
    Text(Vec<Option<String>>),
    Number(Vec<Option<i64>>),
    Truth(Vec<Option<bool>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

/// Rows that are written together.
pub(super) struct Batch {
    lists: Vec<List>,
    rows: u64,
    bytes: usize,
    /// How many rows the last insert wrote.
    pub(super) taken: u64,
}

impl Batch {
    pub(super) fn new(columns: &[Column]) -> Self {
        let list = |column: &Column| match column.kind {
            Kind::Text => List::Text(Vec::new()),
            Kind::Number => List::Number(Vec::new()),
            Kind::Truth => List::Truth(Vec::new()),
            Kind::Bytes => List::Bytes(Vec::new()),
        };
        Self {
            lists: columns.iter().map(list).collect(),
            rows: 0,
            bytes: 0,
            taken: 0,
        }
    }

    pub(super) fn push(&mut self, cells: Vec<Cell>) {
        for (list, cell) in self.lists.iter_mut().zip(cells) {
            self.bytes += cell.size();
            match (list, cell) {
                (List::Text(list), Cell::Text(cell)) => list.push(cell),
                (List::Number(list), Cell::Number(cell)) => list.push(cell),
                (List::Truth(list), Cell::Truth(cell)) => list.push(cell),
                (List::Bytes(list), Cell::Bytes(cell)) => list.push(cell),
                _ => unreachable!("both follow the columns"),
            }
        }
        self.rows += 1;
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows >= ROWS || self.bytes >= BYTES
    }

    /// Writes what there is, and is empty again.
    pub(super) async fn insert(
        &mut self,
        statement: &str,
        there: &mut PgConnection,
    ) -> sqlx::Result<()> {
        self.taken = self.rows;
        if self.rows == 0 {
            return Ok(());
        }
        let mut query = sqlx::query(AssertSqlSafe(statement.to_owned()));
        for list in &mut self.lists {
            query = match list {
                List::Text(list) => query.bind(std::mem::take(list)),
                List::Number(list) => query.bind(std::mem::take(list)),
                List::Truth(list) => query.bind(std::mem::take(list)),
                List::Bytes(list) => query.bind(std::mem::take(list)),
            };
        }
        query.execute(there).await?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}
