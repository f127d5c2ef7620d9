// Session name: what to call a session.
import { text } from '../text';
import type { Row } from './session-list';

/** The title, or the first line of the first prompt. */
export function sessionName(row: Pick<Row, 'title' | 'firstUserMessage' | 'lastUserMessage'> | undefined): string {
  const prompt = row?.firstUserMessage ?? row?.lastUserMessage;
  return row?.title || prompt?.split('\n').find((line) => line.trim() !== '')?.trim() || text.sessions.untitled;
}
