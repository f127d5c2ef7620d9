// Asking before an account is changed, and changing it.
import { request } from '../account';
import { text } from '../text';
import { Confirm } from './confirm';
import type { Asked } from './user-menu';

const words = text.admin.users;

/** `onDone` gets the words for what was done. */
export function UserDialog({ asked: { user, what }, onClose, onDone }: { asked: Asked; onClose: () => void; onDone: (said: string) => Promise<void> }) {
  const name = user.username;
  const path = `/api/admin/users/${user.id}`;
  if (what === 'role') {
    const role = user.role === 'admin' ? 'member' : 'admin';
    const change = async () => {
      await request('PATCH', path, { role });
      await onDone(words.roleDone(name, role));
    };
    return (
      <Confirm title={words.roleTitle(name, role)} action={role === 'admin' ? words.makeAdmin : words.makeMember} isHarmless onDo={change} onClose={onClose}>
        <p>{words.roleWhat(name, role)}</p>
      </Confirm>
    );
  }
  if (what === 'disable') {
    const disable = async () => {
      await request('PATCH', path, { disabled: true });
      await onDone(words.disabled(name));
    };
    return (
      <Confirm title={words.disableTitle(name)} action={words.disable} onDo={disable} onClose={onClose}>
        <p>{words.disableWhat(name)}</p>
      </Confirm>
    );
  }
  const remove = async () => {
    await request('DELETE', path);
    await onDone(words.removed(name));
  };
  return (
    <Confirm title={words.removeTitle(name)} action={words.remove} typed={{ what: name, label: words.removeType(name) }} onDo={remove} onClose={onClose}>
      <p>{words.removeWhat(name)}</p>
      <p class="soft">{words.removeInstead}</p>
    </Confirm>
  );
}
