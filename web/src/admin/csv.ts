// CSV: exports a table for spreadsheets.
import { download } from '../download';

/** Prefixes that a spreadsheet reads as a formula, also full-width and after blanks. */
const FORMULA = /^\s*[=+\-@\t\r\n＝＋－＠]/u;

/** Rows as CSV. Formulas are escaped: anyone can attempt a login under a user name that is one. */
export function csv(rows: readonly (readonly (string | number)[])[]): string {
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

function cell(value: string | number): string {
  const escaped = typeof value === 'string' && FORMULA.test(value) ? `'${value}` : String(value);
  return `"${escaped.replaceAll('"', '""')}"`;
}

export function saveCsv(name: string, content: string): void {
  // The byte order mark tells spreadsheets that the file is UTF-8.
  download(new Blob(['\uFEFF', content], { type: 'text/csv;charset=utf-8' }), name);
}
