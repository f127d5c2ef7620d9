// Share dialog: the members of a session and their roles, for its owner.
import { useEffect, useState } from 'preact/hooks';
import { explain } from '../auth';
import { Dialog } from '../components/dialog';
import { FieldError, Form, requiredValue, valueOf } from '../components/form';
import { IconButton } from '../components/icon';
import { useIsMounted } from '../components/use-is-mounted';
import { text } from '../text';
import { grantAccess, listGrants, revokeAccess } from './session-actions';
import type { Grants } from './session-actions';
import { sessionList } from './session-list';
import type { Row } from './session-list';

const ROLES = ['viewer', 'editor'] as const;

export function ShareDialog({ row, onClose }: { row: Row; onClose: () => void }) {
  const [grants, setGrants] = useState<Grants>();
  const [error, setError] = useState('');
  const isAlive = useIsMounted();
  const load = async () => {
    try {
      const loaded = await listGrants(row);
      if (isAlive.current) setGrants(loaded);
    } catch (failure) {
      if (isAlive.current) setError(explain(failure));
    }
  };
  useEffect(() => void load(), []);

  /** Runs a change and reloads the list. */
  const run = async (task: () => Promise<void>) => {
    setError('');
    try {
      await task();
    } catch (failure) {
      if (isAlive.current) setError(explain(failure));
    }
    sessionList.refreshSoon();
    await load();
  };
  const add = async (form: HTMLFormElement) => {
    const username = requiredValue(form, 'username', text.sessions.needUsername).trim();
    if (username === row.owner) throw new FieldError(text.sessions.isOwner, 'username');
    await grantAccess(row, username, valueOf(form, 'role'));
    form.reset();
    await load();
    return text.sessions.sharedWith(username);
  };
  return (
    <Dialog title={text.sessions.shareTitle} onClose={onClose}>
      <p class="small soft">{text.sessions.shareWords}</p>
      <GrantList grants={grants} onRole={(name, role) => run(() => grantAccess(row, name, role))} onRemove={(name) => run(() => revokeAccess(row, name))} />
      <p class="error" role="alert">{error}</p>
      <Form action={add} label={text.sessions.shareAdd} busyLabel={text.sessions.shareAdding} refusedField="username">
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

function GrantList({ grants, onRole, onRemove }: { grants: Grants | undefined; onRole: (name: string, role: string) => Promise<void>; onRemove: (name: string) => Promise<void> }) {
  if (!grants) return <p class="soft" role="status">{text.common.loading}</p>;
  if (grants.length === 0) return <p class="soft">{text.sessions.sharedWithNobody}</p>;
  return (
    <ul class="plain shared" data-part="grants">
      {grants.map(({ userId, username, role }) => (
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
