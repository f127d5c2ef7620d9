//! Statements over many rows, in few sizes, so that the database remembers them prepared.
//!
//! A statement takes the next power of two of rows; those too many are all null and match nothing.

use std::fmt::Write as _;
use std::sync::OnceLock;

use super::parameter;

/// The most rows of one statement: both databases bound the number of parameters.
pub(super) const MOST: usize = 1_024;
const SIZES: usize = MOST.ilog2() as usize + 1;

/// A statement around a list of rows.
pub(super) struct Shape {
    before: &'static str,
    columns: &'static [&'static str],
    after: &'static [&'static str],
    /// The text for 1, 2, 4… rows, once somebody needed it. It follows from the rest.
    texts: [OnceLock<String>; SIZES],
}

impl Shape {
    /// Each column has its type: Postgres does not guess it in a list of values.
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

    /// The statement for so many rows, of which there is at least one and at most [`MOST`].
    pub(super) fn statement(&'static self, rows: usize) -> &'static str {
        let rows = rows.next_power_of_two();
        self.texts[rows.ilog2() as usize].get_or_init(|| self.write(rows))
    }

    fn write(&self, rows: usize) -> String {
        let mut text = String::from(self.before);
        let mut number = 0;
        for row in 0..rows {
            text.push_str(if row == 0 { "(" } else { ", (" });
            for (place, column) in self.columns.iter().enumerate() {
                number += 1;
                let comma = if place == 0 { "" } else { ", " };
                let parameter = parameter(number);
                write!(text, "{comma}cast({parameter} as {column})").expect("a string takes it");
            }
            text.push(')');
        }
        text.extend(self.after.iter().copied());
        text
    }
}

/// The rows, and nothing in the place of those too many.
pub(super) fn padded<T: Copy>(rows: &[T]) -> impl Iterator<Item = Option<T>> {
    let too_many = rows.len().next_power_of_two() - rows.len();
    rows.iter()
        .copied()
        .map(Some)
        .chain(std::iter::repeat_n(None, too_many))
}
