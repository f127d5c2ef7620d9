// One's own account.
import { useState } from 'preact/hooks';
import { account, explain, request, signOut, standing } from '../account';
import { openHelp } from '../keys';
import { filled, Form } from '../parts/form';
import { say } from '../parts/toast';
import { text } from '../text';
import { AccessToken } from './access-token';
import { Devices } from './devices';
import { Notifications } from './notifications';
import { newPasswordIn, NewPassword, PasswordField, ShowBox } from './password';

export function AccountPage() {
  const now = standing.value;
  if (now.is !== 'in') return null;
  const { username, role } = now.user;
  return (
    <div class="account" data-part="account">
      <section class="card">
        <h1 tabIndex={-1}>{text.account.signedInAs(username)}</h1>
        <p class="soft">{text.account.roles[role] ?? role}</p>
        <LogOut />
      </section>
      <Notifications />
      <Devices />
      <section class="card">
        <h2>{text.account.change}</h2>
        <p class="soft">{text.account.changeWords}</p>
        <ChangePassword username={username} />
      </section>
      <AccessToken />
      <p>
        <button type="button" class="link" onClick={openHelp}>{text.sessions.shortcuts}</button>
      </p>
    </div>
  );
}

function LogOut() {
  const [isBusy, setBusy] = useState(false);
  const leave = async () => {
    if (isBusy) return;
    setBusy(true);
    try {
      await signOut();
    } catch (error) {
      say(explain(error), 'error');
      setBusy(false);
    }
  };
  return (
    <button type="button" class="button quiet" data-part="log-out" aria-disabled={isBusy} onClick={() => void leave()}>
      {isBusy ? text.account.loggingOut : text.account.logOut}
    </button>
  );
}

function ChangePassword({ username }: { username: string }) {
  const [isShown, setShown] = useState(false);
  /** Another number: the fields are made anew, empty. */
  const [turn, setTurn] = useState(0);
  const action = async (form: HTMLFormElement) => {
    const currentPassword = filled(form, 'current', text.account.needCurrent);
    const newPassword = newPasswordIn(form);
    // A wrong password could be taken for an expired token; with one that is known to be good it is not sent twice.
    await request('GET', '/api/auth/me');
    await account().request('POST', '/api/auth/password', { currentPassword, newPassword });
    setTurn(turn + 1);
    return text.account.changed;
  };
  return (
    <Form id="change-password" action={action} label={text.account.change} busyLabel={text.account.changing} fieldOfRefusal="current">
      <input name="username" autocomplete="username" value={username} aria-label={text.account.username} readOnly hidden />
      <div key={turn}>
        <PasswordField id="current" label={text.account.current} isShown={isShown} />
        <NewPassword prefix="new-" labels={{ password: text.account.newPassword, repeat: text.account.repeatNew }} isShown={isShown} />
      </div>
      <ShowBox label={text.account.showPasswords} isShown={isShown} onChange={setShown} />
    </Form>
  );
}
