// What can be done with a session from outside.
import { Failure } from '@switchboard/client';
import { account, noticeEnd, request } from '../account';
import { go, place } from '../place';
import { list } from './list';
import type { Row } from './list';

/** A long session takes a while. */
const DOWNLOAD_MS = 10 * 60_000;

const path = (id: string) => `/api/sessions/${encodeURIComponent(id)}`;

/** Changes something about a session, and shows it. */
export async function change(row: Row, changes: { title?: string; archived?: boolean; control?: 'open' | 'exclusive' }): Promise<void> {
  const changed = await request<Row>('PATCH', path(row.id), changes);
  list.changed(row.id, changed);
}

/** Ends a session for good. Whoever looks at it goes elsewhere. */
export async function remove(row: Row): Promise<void> {
  const at = place.value;
  try {
    await request('DELETE', path(row.id));
  } catch (error) {
    // Somebody else was faster.
    if (!(error instanceof Failure) || error.status !== 404) throw error;
  }
  list.changed(row.id, 'gone');
  if (at.page === 'session' && at.id === row.id) go({ page: 'new' }, 'replace');
}

export type Format = 'markdown' | 'ndjson';
const ENDINGS: Record<Format, string> = { markdown: 'md', ndjson: 'ndjson' };

/** Saves what is kept of a session as a file. A link could not carry the token. */
export async function save(row: Row, format: Format): Promise<void> {
  const file = await download(`${path(row.id)}/export?format=${format}`);
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  link.download = `${row.id}.${ENDINGS[format]}`;
  link.click();
  // Not at once: the browser may not have begun to read it.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

async function download(from: string): Promise<Blob> {
  const mine = account();
  try {
    return await (await mine.login.fetch(from, { timeoutMs: DOWNLOAD_MS })).blob();
  } catch (error) {
    noticeEnd(mine, error);
    throw error;
  }
}

export type Grants = readonly { userId: string; username: string; role: string }[];

/** With whom a session is shared. */
export async function grants(row: Row): Promise<Grants> {
  return (await request<{ grants: Grants }>('GET', `${path(row.id)}/grants`)).grants;
}

/** Lets somebody in, or changes what they may do. */
export async function grant(row: Row, username: string, role: string): Promise<void> {
  await request('PUT', `${path(row.id)}/grants/${encodeURIComponent(username)}`, { role });
}

/** Shuts somebody out. */
export async function revoke(row: Row, username: string): Promise<void> {
  await request('DELETE', `${path(row.id)}/grants/${encodeURIComponent(username)}`);
}
