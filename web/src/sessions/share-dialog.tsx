// With whom a session is shared. Only its owner sees this.
import { useEffect, useState } from 'preact/hooks';
import { explain } from '../account';
import { Dialog } from '../parts/dialog';
import { Complaint, filled, Form, useAlive, valueOf } from '../parts/form';
import { IconButton } from '../parts/icon';
import { grant, grants, revoke } from '../sessions/acts';
import type { Grants } from '../sessions/acts';
import { list } from '../sessions/list';
import type { Row } from '../sessions/list';
import { text } from '../text';

const ROLES = ['viewer', 'editor'] as const;

export function Share({ row, onClose }: { row: Row; onClose: () => void }) {
  const [shared, setShared] = useState<Grants>();
  const [error, setError] = useState('');
  const isAlive = useAlive();
  const load = async () => {
    try {
      const now = await grants(row);
      if (isAlive.current) setShared(now);
    } catch (failure) {
      if (isAlive.current) setError(explain(failure));
    }
  };
  useEffect(() => void load(), []);

  /** Does it, and shows how things are then. */
  const act = async (task: () => Promise<void>) => {
    setError('');
    try {
      await task();
    } catch (failure) {
      if (isAlive.current) setError(explain(failure));
    }
    list.refreshSoon();
    await load();
  };
  const add = async (form: HTMLFormElement) => {
    const username = filled(form, 'username', text.sessions.needUsername).trim();
    if (username === row.owner) throw new Complaint(text.sessions.isOwner, 'username');
    await grant(row, username, valueOf(form, 'role'));
    form.reset();
    await load();
    return text.sessions.sharedWith(username);
  };
  return (
    <Dialog title={text.sessions.shareTitle} onClose={onClose}>
      <p class="small soft">{text.sessions.shareWords}</p>
      <Shared shared={shared} onRole={(name, role) => act(() => grant(row, name, role))} onRemove={(name) => act(() => revoke(row, name))} />
      <p class="error" role="alert">{error}</p>
      <Form action={add} label={text.sessions.shareAdd} busyLabel={text.sessions.shareAdding} fieldOfRefusal="username">
        <div class="share-add">
          <label class="field">
            <span>{text.account.username}</span>
            <input class="input" name="username" autocomplete="off" autocapitalize="none" spellcheck={false} />
          </label>
          <label class="field">
            <span>{text.sessions.role}</span>
            <RoleSelect name="role" />
          </label>
        </div>
      </Form>
      <div class="dialog-buttons">
        <button type="button" class="button quiet" onClick={onClose}>{text.common.close}</button>
      </div>
    </Dialog>
  );
}

function Shared({ shared, onRole, onRemove }: { shared: Grants | undefined; onRole: (name: string, role: string) => Promise<void>; onRemove: (name: string) => Promise<void> }) {
  if (!shared) return <p class="soft" role="status">{text.common.loading}</p>;
  if (shared.length === 0) return <p class="soft">{text.sessions.sharedWithNobody}</p>;
  return (
    <ul class="plain shared" data-part="grants">
      {shared.map(({ userId, username, role }) => (
        <li key={userId} data-user={username}>
          <strong>{username}</strong>
          <RoleSelect label={text.sessions.roleOf(username)} value={role} onChange={(chosen) => void onRole(username, chosen)} />
          <IconButton name="close" label={text.sessions.unshare(username)} onClick={() => void onRemove(username)} />
        </li>
      ))}
    </ul>
  );
}

function RoleSelect({ name, label, value, onChange }: { name?: string; label?: string; value?: string; onChange?: (role: string) => void }) {
  return (
    <select class="input" name={name} aria-label={label} value={value} onChange={(event) => onChange?.(event.currentTarget.value)}>
      {ROLES.map((role) => (
        <option key={role} value={role}>{text.sessions.roles[role]}</option>
      ))}
    </select>
  );
}
