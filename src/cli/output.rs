//! Output of commands, for people and for programs.

use std::io::{self, Stdout, Write as _};

use serde::Serialize;

/// Standard output cannot be written. A type of its own: a reader that goes away is no failure of the command,
/// other I/O errors are.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
pub(super) struct OutputError(#[from] io::Error);

impl OutputError {
    /// `switchboard user list | head -1`
    pub(super) fn reader_is_gone(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

/// Standard output.
pub(super) struct Output(Stdout);

impl Output {
    pub(super) fn new() -> Self {
        Self(io::stdout())
    }

    /// Writes text as it is.
    pub(super) fn text(&mut self, text: &str) -> Result<(), OutputError> {
        self.0.write_all(text.as_bytes())?;
        Ok(self.0.flush()?)
    }

    /// Writes one line.
    pub(super) fn line(&mut self, text: impl AsRef<str>) -> Result<(), OutputError> {
        self.text(&format!("{}\n", text.as_ref()))
    }

    /// Writes pretty-printed JSON.
    pub(super) fn json(&mut self, value: &impl Serialize) -> Result<(), OutputError> {
        let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
        self.line(text)
    }

    /// Writes columns under headers, each as wide as its widest value.
    pub(super) fn table<const N: usize>(
        &mut self,
        names: [&str; N],
        rows: &[[String; N]],
    ) -> Result<(), OutputError> {
        let mut widths = names.map(str::len);
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = row(&widths, &names);
        for cells in rows {
            text.push_str(&row(&widths, &cells.each_ref().map(String::as_str)));
        }
        self.text(&text)
    }
}

/// Warns on standard error; the command itself succeeded.
pub(super) fn warn(text: impl std::fmt::Display) {
    // Nothing left to do if standard error is closed.
    drop(writeln!(io::stderr(), "warning: {text}"));
}

fn row(widths: &[usize], cells: &[&str]) -> String {
    let padded: Vec<String> = widths
        .iter()
        .zip(cells)
        .map(|(width, cell)| format!("{cell:<width$}"))
        .collect();
    format!("{}\n", padded.join("  ").trim_end())
}
