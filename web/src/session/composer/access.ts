// What somebody may do in a session.
import type { Protocol } from '@switchboard/client';
import { standing } from '../../account';
import type { OpenSession } from '../open';

export type Access = Protocol.MemberBody['access'];

/** What the one who is signed in may do, as far as the session has told; nothing as long as it has not. */
export function accessIn(session: OpenSession): Access | undefined {
  const now = standing.value;
  if (now.is !== 'in') return undefined;
  return session.view.value.presence.find(({ userId }) => userId === now.user.id)?.access;
}
