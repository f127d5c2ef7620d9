// Account page: the signed-in user's account.
import { useState } from 'preact/hooks';
import { account, currentUser, request, signOut } from '../auth';
import { NewPasswordFields, PasswordField, readNewPassword, ShowPasswordBox } from '../auth/password-fields';
import { Form, requiredValue } from '../components/form';
import { useToastedAction } from '../components/use-action';
import { openShortcutHelp } from '../keyboard-shortcuts';
import { text } from '../text';
import { AccessToken } from './access-token';
import { Devices } from './devices';
import { NotificationSettings } from './notification-settings';
import { Usage } from './usage';

export function AccountPage() {
  const user = currentUser();
  if (!user) return null;
  const { username, role } = user;
  return (
    <div class="account" data-part="account">
      <section class="card">
        <h1 tabIndex={-1}>{text.account.signedInAs(username)}</h1>
        <p class="soft">{text.account.roles[role] ?? role}</p>
        <LogOutButton />
      </section>
      <NotificationSettings />
      <Usage />
      <Devices />
      <section class="card">
        <h2>{text.account.change}</h2>
        <p class="soft">{text.account.changeWords}</p>
        <ChangePassword username={username} />
      </section>
      <AccessToken />
      <p>
        <button type="button" class="link" onClick={openShortcutHelp}>{text.sessions.shortcuts}</button>
      </p>
    </div>
  );
}

function LogOutButton() {
  const { isBusy, run: logOut } = useToastedAction(signOut);
  return (
    <button type="button" class="button quiet" data-part="log-out" aria-disabled={isBusy} onClick={logOut}>
      {isBusy ? text.account.loggingOut : text.account.logOut}
    </button>
  );
}

function ChangePassword({ username }: { username: string }) {
  const [isShown, setShown] = useState(false);
  /** A new key recreates the fields, empty. */
  const [formKey, setFormKey] = useState(0);
  const action = async (form: HTMLFormElement) => {
    const currentPassword = requiredValue(form, 'current', text.account.needCurrent);
    const newPassword = readNewPassword(form);
    // A wrong password looks like an expired token and would be sent twice. Checking the token first prevents
    // that.
    await request('GET', '/api/auth/me');
    await account().request('POST', '/api/auth/password', { currentPassword, newPassword });
    setFormKey(formKey + 1);
    return text.account.changed;
  };
  return (
    <Form id="change-password" action={action} label={text.account.change} busyLabel={text.account.changing} refusedField="current">
      <input name="username" autocomplete="username" value={username} aria-label={text.account.username} readOnly hidden />
      <div key={formKey}>
        <PasswordField id="current" label={text.account.current} isShown={isShown} />
        <NewPasswordFields prefix="new-" labels={{ password: text.account.newPassword, repeat: text.account.repeatNew }} isShown={isShown} />
      </div>
      <ShowPasswordBox label={text.account.showPasswords} isShown={isShown} onChange={setShown} />
    </Form>
  );
}
