// Access: what the signed-in user may do in a session.
import type { Protocol } from '@switchboard/client';
import { currentUser } from '../auth';
import { sessionList } from '../sessions/session-list';
import type { OpenSession } from './open-session';

export type Access = Protocol.MemberBody['access'];

/** The user's access, as far as known. */
export function accessTo(session: OpenSession): Access | undefined {
  const user = currentUser();
  if (!user) return undefined;
  const member = session.view.value.presence.find(({ userId }) => userId === user.id);
  // A single member gets no presence.
  return member?.access ?? (sessionList.row(session.id)?.access as Access | undefined);
}

/** The name of the member in control, if control is exclusive and held by another user. */
export function otherController(session: OpenSession): string | undefined {
  const user = currentUser();
  const { control } = session.view.value;
  return user && control?.mode === 'exclusive' && control.username !== user.username ? control.username : undefined;
}
