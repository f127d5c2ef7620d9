// User change dialog: confirms and makes a change to an account.
import { request } from '../auth';
import { text } from '../text';
import { AdminConfirmDialog } from './admin-confirm-dialog';
import type { UserChange } from './user-menu';

const strings = text.admin.users;

/** `onDone` gets the message to show. */
export function UserChangeDialog({ change: { user, kind }, onClose, onDone }: { change: UserChange; onClose: () => void; onDone: (message: string) => Promise<void> }) {
  const name = user.username;
  const path = `/api/admin/users/${user.id}`;
  if (kind === 'role') {
    const role = user.role === 'admin' ? 'member' : 'admin';
    const change = async () => {
      await request('PATCH', path, { role });
      await onDone(strings.roleDone(name, role));
    };
    return (
      <AdminConfirmDialog title={strings.roleTitle(name, role)} label={role === 'admin' ? strings.makeAdmin : strings.makeMember} isHarmless onConfirm={change} onClose={onClose}>
        <p>{strings.roleWhat(name, role)}</p>
      </AdminConfirmDialog>
    );
  }
  if (kind === 'disable') {
    const disable = async () => {
      await request('PATCH', path, { disabled: true });
      await onDone(strings.disabled(name));
    };
    return (
      <AdminConfirmDialog title={strings.disableTitle(name)} label={strings.disable} onConfirm={disable} onClose={onClose}>
        <p>{strings.disableWhat(name)}</p>
      </AdminConfirmDialog>
    );
  }
  const remove = async () => {
    await request('DELETE', path);
    await onDone(strings.removed(name));
  };
  return (
    <AdminConfirmDialog title={strings.removeTitle(name)} label={strings.remove} typedConfirmation={{ expected: name, label: strings.removeType(name) }} onConfirm={remove} onClose={onClose}>
      <p>{strings.removeWhat(name)}</p>
      <p class="soft">{strings.removeInstead}</p>
    </AdminConfirmDialog>
  );
}
