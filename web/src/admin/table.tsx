// A table that becomes a stack of cards where there is no room for its columns.
import type { ComponentChildren } from 'preact';
import { text } from '../text';
import type { Loaded, Page } from './load';

const words = text.admin.table;

/** One column. The first one of a table names the row. */
export interface Column<Row> {
  label: string;
  show: (row: Row) => ComponentChildren;
  /** `number`: at the right; `long`: breaks anywhere; `actions`: buttons, whose label is for ears only. */
  kind?: 'number' | 'long' | 'actions';
}

interface TableProps<Row> {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  /** What makes a row the same when the list is read again. */
  keyOf: (row: Row) => string | number;
  /** What tests and styles know it by. */
  mark: (row: Row) => { [name: `data-${string}`]: string | number };
}

/** The roles are what the elements are anyway; browsers forget them once a row is laid out as a card. */
export function Table<Row>({ caption, columns, rows, keyOf, mark }: TableProps<Row>) {
  return (
    <table class="admin-table" role="table">
      <caption class="heard">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map(({ label, kind }) => (
            <th key={label} scope="col" role="columnheader" class={kind}>
              <span class={kind === 'actions' ? 'heard' : undefined}>{label}</span>
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={keyOf(row)} role="row" {...mark(row)}>
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

/** A list with everything that can be said about it: still loading, failed, empty, how to see more. */
export function List<Row>({ list, empty, more = text.common.more, ...table }: { list: Loaded<Page<Row>> & { more: () => Promise<void> }; empty: string; more?: string } & Omit<TableProps<Row>, 'rows'>) {
  const { data, isLoading } = list;
  return (
    <div class="admin-list" aria-busy={isLoading}>
      <Trouble of={list} />
      {data && data.items.length > 0 && <Table {...table} rows={data.items} />}
      <p class="soft status" role="status">
        {data ? (data.items.length === 0 ? empty : words.shown(data.items.length, data.next != null)) : isLoading ? text.common.loading : ''}
      </p>
      {data?.next != null && (
        <button type="button" class="button quiet" aria-disabled={isLoading} onClick={() => isLoading || void list.more()} data-part="more">
          {more}
        </button>
      )}
    </div>
  );
}

/** Why something could not be read, and another try. */
export function Trouble({ of: { error, data, reload, isLoading } }: { of: Loaded<unknown> }) {
  return (
    <div role="alert">
      {error !== undefined && (
        <div class="error admin-trouble">
          <span>{data === undefined ? error : words.old(error)}</span>
          <button type="button" class="button danger small" aria-disabled={isLoading} onClick={() => isLoading || void reload()}>
            {text.common.retry}
          </button>
        </div>
      )}
    </div>
  );
}

/** An id by its last letters, which are what tells it from others; all of it as a title. */
export function Id({ id }: { id: string }) {
  return (
    <code class="admin-id" title={id}>
      {words.id(id)}
    </code>
  );
}
