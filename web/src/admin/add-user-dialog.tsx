// Add user dialog: creates an account.
import type { Http } from '@switchboard/client';
import { useState } from 'preact/hooks';
import { request } from '../auth';
import { Dialog } from '../components/dialog';
import { useAction } from '../components/use-action';
import { text } from '../text';

const strings = text.admin.users;
/** The gateway's own rule; it also lower-cases the name. */
const USERNAME = /^[a-z0-9][a-z0-9._@-]{0,63}$/i;
const ROLES = [
  { role: 'member', hint: strings.memberHint },
  { role: 'admin', hint: strings.adminHint },
];

/** No password here: users set their own with the link that the gateway returns. */
export function AddUserDialog({ onClose, onAdded }: { onClose: () => void; onAdded: (name: string, link?: Http.InviteBody | null) => Promise<void> }) {
  const [username, setUsername] = useState('');
  const [role, setRole] = useState('member');
  const [problem, setProblem] = useState('');
  const { isBusy, error, run } = useAction(async () => {
    const { user, invite } = await request<Http.CreatedBody>('POST', '/api/admin/users', { username: username.trim(), role });
    await onAdded(user.username, invite);
  });
  const onSubmit = (event: Event) => {
    event.preventDefault();
    const isValid = USERNAME.test(username.trim());
    setProblem(isValid ? '' : strings.usernameHint);
    if (isValid) void run();
  };
  return (
    <Dialog title={strings.addTitle} onClose={() => isBusy || onClose()}>
      <form id="add-user" noValidate onSubmit={onSubmit}>
        <label class="field">
          <span>{strings.username}</span>
          <span class="hint">{strings.usernameHint}</span>
          <input id="new-username" class="input" value={username} maxLength={64} aria-invalid={(problem || error) !== ''} autocomplete="off" autocapitalize="none" spellcheck={false} autofocus onInput={(event) => setUsername(event.currentTarget.value)} />
        </label>
        <fieldset class="admin-choices">
          <legend>{strings.role}</legend>
          {ROLES.map((choice) => (
            <label class="admin-choice" key={choice.role}>
              <input type="radio" name="role" value={choice.role} checked={role === choice.role} onChange={() => setRole(choice.role)} />
              <span>
                {strings.roles[choice.role]}
                <span class="soft small">{choice.hint}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <p class="error" role="alert">{problem || error}</p>
        <div class="dialog-buttons">
          <button type="button" class="button quiet" onClick={() => isBusy || onClose()}>
            {text.common.cancel}
          </button>
          <button type="submit" class="button" aria-disabled={isBusy}>
            {isBusy ? text.common.moment : strings.addDo}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
