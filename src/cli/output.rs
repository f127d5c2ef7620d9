//! What a command says, to people or to programs.

use std::io::{self, Stdout, Write};

use serde::Serialize;

/// Standard output. A reader that goes away is an error to be passed on, not a panic.
pub(super) struct Output(Stdout);

impl Output {
    pub(super) fn new() -> Self {
        Self(io::stdout())
    }

    /// One line.
    pub(super) fn line(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        writeln!(self.0, "{}", text.as_ref())?;
        self.0.flush()
    }

    /// One value, readable.
    pub(super) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut self.0, value)?;
        writeln!(self.0)?;
        self.0.flush()
    }

    /// Columns under their names, as wide as their widest value.
    pub(super) fn table<const N: usize>(
        &mut self,
        names: [&str; N],
        rows: &[[String; N]],
    ) -> io::Result<()> {
        let mut widths = names.map(str::len);
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        self.row(&widths, &names)?;
        for row in rows {
            self.row(&widths, &row.each_ref().map(String::as_str))?;
        }
        self.0.flush()
    }

    fn row(&mut self, widths: &[usize], cells: &[&str]) -> io::Result<()> {
        let padded: Vec<String> = widths
            .iter()
            .zip(cells)
            .map(|(width, cell)| format!("{cell:<width$}"))
            .collect();
        writeln!(self.0, "{}", padded.join("  ").trim_end())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
