// Session name: what to call a session.
import { text } from '../text';
import type { Row } from './session-list';

/** The title, or the first line of the last prompt. */
export function sessionName(row: Pick<Row, 'title' | 'lastUserMessage'> | undefined): string {
  return row?.title || row?.lastUserMessage?.split('\n')[0] || text.sessions.untitled;
}
