// What somebody may do in a session.
import type { Protocol } from '@switchboard/client';
import { standing } from '../../account';
import { list } from '../../sessions/list';
import type { OpenSession } from '../open';

export type Access = Protocol.MemberBody['access'];

/** What the one who is signed in may do, as far as it is known. */
export function accessIn(session: OpenSession): Access | undefined {
  const now = standing.value;
  if (now.is !== 'in') return undefined;
  const here = session.view.value.presence.find(({ userId }) => userId === now.user.id);
  // Whoever is alone is not told who is here.
  return here?.access ?? (list.row(session.id)?.access as Access | undefined);
}

/** The name of somebody else who drives, where only one may. */
export function driverOf(session: OpenSession): string | undefined {
  const now = standing.value;
  const { control } = session.view.value;
  const isOther = control?.mode === 'exclusive' && now.is === 'in' && control.username !== now.user.username;
  return isOther ? control.username : undefined;
}
