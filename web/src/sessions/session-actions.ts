// Session actions: change, delete, export and share a session over HTTP.
import { Failure } from '@switchboard/client';
import { account, request, signOutIfEnded } from '../auth';
import { download } from '../download';
import { navigate, route } from '../route';
import { sessionList } from './session-list';
import type { Row } from './session-list';

/** Exporting a long session takes a while. */
const DOWNLOAD_TIMEOUT_MS = 10 * 60_000;

const sessionPath = (id: string) => `/api/sessions/${encodeURIComponent(id)}`;

/** Changes a session and its row in the list. */
export async function changeSession(row: Row, changes: { title?: string; archived?: boolean; control?: 'open' | 'exclusive' }): Promise<void> {
  const changed = await request<Row>('PATCH', sessionPath(row.id), changes);
  sessionList.rowChanged(row.id, changed);
}

/** Deletes a session; leaves its page if it is open. */
export async function deleteSession(row: Row): Promise<void> {
  const current = route.value;
  try {
    await request('DELETE', sessionPath(row.id));
  } catch (error) {
    // Already deleted.
    if (!(error instanceof Failure) || error.status !== 404) throw error;
  }
  sessionList.rowChanged(row.id, 'gone');
  if (current.page === 'session' && current.id === row.id) navigate({ page: 'new' }, 'replace');
}

export type Format = 'markdown' | 'ndjson';

/** Saves a session as a file named after it. Fetched, because a plain link could not carry the token. */
export async function exportSession(row: Row, format: Format): Promise<void> {
  const response = await fetchExport(`${sessionPath(row.id)}/export?format=${format}`);
  const name = /filename\*=UTF-8''([^;]+)/.exec(response.headers.get('Content-Disposition') ?? '')?.[1];
  download(await response.blob(), name === undefined ? row.id : decodeURIComponent(name));
}

async function fetchExport(from: string): Promise<Response> {
  const current = account();
  try {
    return await current.login.fetch(from, { timeoutMs: DOWNLOAD_TIMEOUT_MS });
  } catch (error) {
    signOutIfEnded(current, error);
    throw error;
  }
}

export type Grants = readonly { userId: string; username: string; role: string }[];

export async function listGrants(row: Row): Promise<Grants> {
  return (await request<{ grants: Grants }>('GET', `${sessionPath(row.id)}/grants`)).grants;
}

/** Grants access, or changes the role. */
export async function grantAccess(row: Row, username: string, role: string): Promise<void> {
  await request('PUT', `${sessionPath(row.id)}/grants/${encodeURIComponent(username)}`, { role });
}

export async function revokeAccess(row: Row, username: string): Promise<void> {
  await request('DELETE', `${sessionPath(row.id)}/grants/${encodeURIComponent(username)}`);
}
