//! Bulk statements: one statement for many rows, in few sizes, so that prepared statements are reused.
//!
//! Row counts are rounded up to a power of two; padding rows are all null and match nothing.

use std::fmt::Write as _;
use std::sync::OnceLock;

use super::placeholder;

/// Both databases bound the number of parameters.
pub(super) const MAX_ROWS: usize = 1_024;
const SIZES: usize = MAX_ROWS.ilog2() as usize + 1;

/// A statement around a `values` list.
pub(super) struct BulkStatement {
    before: &'static str,
    columns: &'static [&'static str],
    after: &'static [&'static str],
    /// Statement for 1, 2, 4… rows, built on first use.
    texts: [OnceLock<String>; SIZES],
}

impl BulkStatement {
    /// Columns are cast: Postgres does not infer types in a `values` list.
    pub(super) const fn new(
        before: &'static str,
        columns: &'static [&'static str],
        after: &'static [&'static str],
    ) -> Self {
        Self {
            before,
            columns,
            after,
            texts: [const { OnceLock::new() }; SIZES],
        }
    }

    /// The statement for at least one and at most [`MAX_ROWS`] rows.
    pub(super) fn statement(&'static self, rows: usize) -> &'static str {
        let rows = rows.next_power_of_two();
        self.texts[rows.ilog2() as usize].get_or_init(|| self.write(rows))
    }

    fn write(&self, rows: usize) -> String {
        let mut text = String::from(self.before);
        let mut number = 0;
        for row in 0..rows {
            text.push_str(if row == 0 { "(" } else { ", (" });
            for (index, column) in self.columns.iter().enumerate() {
                number += 1;
                let comma = if index == 0 { "" } else { ", " };
                let placeholder = placeholder(number);
                write!(text, "{comma}cast({placeholder} as {column})").expect("a string takes it");
            }
            text.push(')');
        }
        text.extend(self.after.iter().copied());
        text
    }
}

/// The rows, then `None` for padding.
pub(super) fn padded<T: Copy>(rows: &[T]) -> impl Iterator<Item = Option<T>> {
    let too_many = rows.len().next_power_of_two() - rows.len();
    rows.iter()
        .copied()
        .map(Some)
        .chain(std::iter::repeat_n(None, too_many))
}
