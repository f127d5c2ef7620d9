// Filter state: the filters of the admin lists. Kept while the page is open, so that a link can set the
// filter of another section and a list keeps its filter when left and reopened.
import { signal } from '@preact/signals';

export const ALL_SESSIONS = { user: '', agent: '', status: '' };
export const sessionFilter = signal(ALL_SESSIONS);

export const ALL_CONNECTIONS = { user: '', session: '' };
export const connectionFilter = signal(ALL_CONNECTIONS);

/** Days are in the time zone of the reader. */
export const ALL_AUDIT_ENTRIES = { actor: '', action: '', target: '', since: '', until: '' };
export const auditFilter = signal(ALL_AUDIT_ENTRIES);

export const userFilter = signal('');
