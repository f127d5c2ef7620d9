// The door for whoever makes the first account.
import { useState } from 'preact/hooks';
import { enter, gateway } from '../account';
import { filled, Form } from '../parts/form';
import { text } from '../text';
import { Door, ToLogin } from './door';
import { dropLinkToken, useLinkToken } from './link';
import { newPasswordIn, NewPassword, ShowBox } from './password';

const KEY = 'switchboard-setup';

export function Setup() {
  const token = useLinkToken(KEY);
  return <Door title={text.account.setupTab}>{token ? <SetupForm token={token} /> : <NoLink />}</Door>;
}

function SetupForm({ token }: { token: string }) {
  const [isShown, setShown] = useState(false);
  const action = async (form: HTMLFormElement) => {
    const username = filled(form, 'username', text.account.needUsername).trim();
    const account = await gateway.setUp(token, username, newPasswordIn(form));
    dropLinkToken(KEY);
    enter(account);
  };
  return (
    <>
      <h1>{text.account.welcome}</h1>
      <p>{text.account.welcomeWords}</p>
      <Form id="setup" action={action} label={text.account.create} busyLabel={text.account.creating} after={<Refused />}>
        <label class="field">
          <span>{text.account.username}</span>
          <input class="input" id="username" name="username" defaultValue="admin" autocomplete="username" autocapitalize="none" spellcheck={false} required />
        </label>
        <NewPassword labels={{ password: text.account.password, repeat: text.account.repeat }} isShown={isShown} />
        <ShowBox label={text.account.showPasswords} isShown={isShown} onChange={setShown} />
      </Form>
    </>
  );
}

function Refused() {
  return (
    <p class="small soft">
      {text.account.refusedSetup[0]}
      <code>switchboard setup-url</code>
      {text.account.refusedSetup[1]} <ToLogin />
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
        {text.account.alreadySetUp} <ToLogin />
      </p>
    </>
  );
}
