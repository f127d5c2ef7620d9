// Table: a table that becomes a stack of cards on narrow pages.
import type { ComponentChildren } from 'preact';
import { text } from '../text';
import type { Loaded, Page } from './use-load';

const strings = text.admin.table;

/** The first column names the row. */
export interface Column<Row> {
  label: string;
  show: (row: Row) => ComponentChildren;
  /** `number`: right-aligned; `long`: breaks anywhere; `actions`: buttons, with a visually hidden label. */
  kind?: 'number' | 'long' | 'actions';
}

interface TableProps<Row> {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  /** Identifies a row across reloads. */
  keyOf: (row: Row) => string | number;
  /** Data attributes for tests and styles. */
  rowAttributes: (row: Row) => { [name: `data-${string}`]: string | number };
}

/** Explicit roles, because browsers drop the implicit ones when rows are laid out as cards. */
export function Table<Row>({ caption, columns, rows, keyOf, rowAttributes }: TableProps<Row>) {
  return (
    <table class="admin-table" role="table">
      <caption class="visually-hidden">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map(({ label, kind }) => (
            <th key={label} scope="col" role="columnheader" class={kind}>
              <span class={kind === 'actions' ? 'visually-hidden' : undefined}>{label}</span>
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={keyOf(row)} role="row" {...rowAttributes(row)}>
            {columns.map((column, index) => (
              <Cell key={column.label} column={column} row={row} isName={index === 0} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Cell<Row>({ column: { label, kind, show }, row, isName }: { column: Column<Row>; row: Row; isName: boolean }) {
  if (isName) {
    return (
      <th scope="row" role="rowheader">
        {show(row)}
      </th>
    );
  }
  return (
    <td role="cell" class={kind} data-label={kind === 'actions' ? undefined : label}>
      <div>{show(row)}</div>
    </td>
  );
}

/** A table of several pages, with its loading, error and empty states. */
export function PagedTable<Row>({ list, empty, more = text.common.more, ...table }: { list: Loaded<Page<Row>> & { more: () => Promise<void> }; empty: string; more?: string } & Omit<TableProps<Row>, 'rows'>) {
  const { data, isLoading } = list;
  return (
    <div class="admin-list" aria-busy={isLoading}>
      <LoadError loaded={list} />
      {data && data.items.length > 0 && <Table {...table} rows={data.items} />}
      <p class="soft status" role="status">
        {data ? (data.items.length === 0 ? empty : strings.shown(data.items.length, data.next != null)) : isLoading ? text.common.loading : ''}
      </p>
      {data?.next != null && (
        <button type="button" class="button quiet" aria-disabled={isLoading} onClick={() => isLoading || void list.more()} data-part="more">
          {more}
        </button>
      )}
    </div>
  );
}

/** The error of a load, with a retry button. */
export function LoadError({ loaded: { error, data, reload, isLoading } }: { loaded: Loaded<unknown> }) {
  return (
    <div role="alert">
      {error !== undefined && (
        <div class="error admin-trouble">
          <span>{data === undefined ? error : strings.old(error)}</span>
          <button type="button" class="button danger small" aria-disabled={isLoading} onClick={() => isLoading || void reload()}>
            {text.common.retry}
          </button>
        </div>
      )}
    </div>
  );
}

/** The end of an id, which tells it from others; the whole id as a tooltip. */
export function ShortId({ id }: { id: string }) {
  return (
    <code class="admin-id" title={id}>
      {strings.id(id)}
    </code>
  );
}
