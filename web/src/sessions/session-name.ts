// How a session is called where it has no title.
import { text } from '../text';
import type { Row } from './list';

/** Its title, or how the last prompt in it begins. */
export function nameOf(row: Pick<Row, 'title' | 'lastUserMessage'> | undefined): string {
  return row?.title || row?.lastUserMessage?.split('\n')[0] || text.sessions.untitled;
}
