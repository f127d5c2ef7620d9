// How lists are narrowed. Kept while the page is open, so that a link from one part can narrow the list
// of another, and so that a list is as it was when somebody comes back to it.
import { signal } from '@preact/signals';

/** Which sessions. */
export const NO_FILTER = { user: '', agent: '', status: '' };
export const sessionFilter = signal(NO_FILTER);

/** Whose connections, in which session. */
export const EVERYBODY = { user: '', session: '' };
export const connectionFilter = signal(EVERYBODY);

/** Which acts. Days are those of whoever looks. */
export const ALL_ACTS = { actor: '', action: '', target: '', since: '', until: '' };
export const actFilter = signal(ALL_ACTS);

/** Which users. */
export const nameFilter = signal('');
