// A table as a file for spreadsheets.

/** Beginnings that a spreadsheet takes for a formula, also in their wide forms and behind blanks. */
const FORMULA = /^\s*[=+\-@\t\r\n＝＋－＠]/u;

/** Rows of cells as CSV. Anybody can try to log in under the name of a formula; here it stays a text. */
export function csv(rows: readonly (readonly (string | number)[])[]): string {
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

function cell(value: string | number): string {
  const told = typeof value === 'string' && FORMULA.test(value) ? `'${value}` : String(value);
  return `"${told.replaceAll('"', '""')}"`;
}

/** Gives the browser a file to keep. */
export function save(name: string, content: string): void {
  // The mark at the beginning tells spreadsheets that it is UTF-8.
  const url = URL.createObjectURL(new Blob(['\uFEFF', content], { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // Some browsers begin to read a moment later.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
