// Setup page: creates the first account.
import { useState } from 'preact/hooks';
import { gateway, signIn } from '../auth';
import { Form, requiredValue } from '../components/form';
import { text } from '../text';
import { AuthCard, LoginLink } from './auth-card';
import { removeLinkToken, useLinkToken } from './link-token';
import { NewPasswordFields, readNewPassword, ShowPasswordBox } from './password-fields';

const STORAGE_KEY = 'switchboard-setup';

export function SetupPage() {
  const token = useLinkToken(STORAGE_KEY);
  return <AuthCard title={text.account.setupTab}>{token ? <SetupForm token={token} /> : <NoLink />}</AuthCard>;
}

function SetupForm({ token }: { token: string }) {
  const [isShown, setShown] = useState(false);
  const action = async (form: HTMLFormElement) => {
    const username = requiredValue(form, 'username', text.account.needUsername).trim();
    const account = await gateway.setUp(token, username, readNewPassword(form));
    removeLinkToken(STORAGE_KEY);
    signIn(account);
  };
  return (
    <>
      <h1>{text.account.welcome}</h1>
      <p>{text.account.welcomeWords}</p>
      <Form id="setup" action={action} label={text.account.create} busyLabel={text.account.creating} after={<RefusedHint />}>
        <label class="field">
          <span>{text.account.username}</span>
          <input class="input" id="username" name="username" defaultValue="admin" autocomplete="username" autocapitalize="none" spellcheck={false} required />
        </label>
        <NewPasswordFields labels={{ password: text.account.password, repeat: text.account.repeat }} isShown={isShown} />
        <ShowPasswordBox label={text.account.showPasswords} isShown={isShown} onChange={setShown} />
      </Form>
    </>
  );
}

function RefusedHint() {
  return (
    <p class="small soft">
      {text.account.refusedSetup[0]}
      <code>switchboard setup-url</code>
      {text.account.refusedSetup[1]} <LoginLink />
    </p>
  );
}

function NoLink() {
  return (
    <>
      <h1>{text.account.setupNeedsLink}</h1>
      <p>{text.account.setupPrintOne}</p>
      <pre class="command">
        <code>switchboard setup-url</code>
      </pre>
      <p>
        {text.account.alreadySetUp} <LoginLink />
      </p>
    </>
  );
}
