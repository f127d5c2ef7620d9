//! Statements over many rows, in few sizes, so that the database remembers them prepared.
//!
//! A statement takes the next power of two of rows; those too many are all null and match nothing.

use std::fmt::Write as _;

/// The most rows of one statement: both databases bound the number of parameters.
pub(super) const MOST: usize = 1_024;

/// A statement around a list of rows.
pub(super) struct Shape {
    pub(super) before: &'static str,
    /// The type of each column: Postgres does not guess it in a list of values.
    pub(super) columns: &'static [&'static str],
    pub(super) after: &'static str,
}

/// The statement for so many rows.
pub(super) fn statement(shape: &Shape, rows: usize) -> String {
    let mut text = String::from(shape.before);
    let mut parameter = 0;
    for row in 0..rows.next_power_of_two() {
        text.push_str(if row == 0 { "(" } else { ", (" });
        for (place, column) in shape.columns.iter().enumerate() {
            parameter += 1;
            let comma = if place == 0 { "" } else { ", " };
            write!(text, "{comma}cast(${parameter} as {column})").expect("a string takes it");
        }
        text.push(')');
    }
    text.push_str(shape.after);
    text
}

/// The rows, and nothing in the place of those too many.
pub(super) fn padded<T: Copy>(rows: &[T]) -> impl Iterator<Item = Option<T>> {
    let too_many = rows.len().next_power_of_two() - rows.len();
    rows.iter()
        .copied()
        .map(Some)
        .chain(std::iter::repeat_n(None, too_many))
}
