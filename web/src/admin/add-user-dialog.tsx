// Making an account for somebody.
import type { Http } from '@switchboard/client';
import { useState } from 'preact/hooks';
import { request } from '../account';
import { Dialog } from '../parts/dialog';
import { text } from '../text';
import { useAct } from './confirm';

const words = text.admin.users;
/** As the gateway has it, which also folds upper case. */
const NAME = /^[a-z0-9][a-z0-9._@-]{0,63}$/i;
const ROLES = [
  { role: 'member', hint: words.memberHint },
  { role: 'admin', hint: words.adminHint },
];

/** Without a password: they set it themselves, with the link that the gateway gives. */
export function AddUser({ onClose, onAdded }: { onClose: () => void; onAdded: (name: string, link?: Http.InviteBody | null) => Promise<void> }) {
  const [username, setUsername] = useState('');
  const [role, setRole] = useState('member');
  const [wrong, setWrong] = useState('');
  const { isBusy, error, run } = useAct(async () => {
    const { user, invite } = await request<Http.CreatedBody>('POST', '/api/admin/users', { username: username.trim(), role });
    await onAdded(user.username, invite);
  });
  const onSubmit = (event: Event) => {
    event.preventDefault();
    const isGood = NAME.test(username.trim());
    setWrong(isGood ? '' : words.usernameHint);
    if (isGood) void run();
  };
  return (
    <Dialog title={words.addTitle} onClose={() => isBusy || onClose()}>
      <form id="add-user" noValidate onSubmit={onSubmit}>
        <label class="field">
          <span>{words.username}</span>
          <span class="hint">{words.usernameHint}</span>
          <input id="new-username" class="input" value={username} maxLength={64} aria-invalid={(wrong || error) !== ''} autocomplete="off" autocapitalize="none" spellcheck={false} autofocus onInput={(event) => setUsername(event.currentTarget.value)} />
        </label>
        <fieldset class="admin-choices">
          <legend>{words.role}</legend>
          {ROLES.map((choice) => (
            <label class="admin-choice" key={choice.role}>
              <input type="radio" name="role" value={choice.role} checked={role === choice.role} onChange={() => setRole(choice.role)} />
              <span>
                {words.roles[choice.role]}
                <span class="soft small">{choice.hint}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <p class="error" role="alert">{wrong || error}</p>
        <div class="dialog-buttons">
          <button type="button" class="button quiet" onClick={() => isBusy || onClose()}>
            {text.common.cancel}
          </button>
          <button type="submit" class="button" aria-disabled={isBusy}>
            {isBusy ? text.common.moment : words.addDo}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
