// Login page: signs in with a name and a password.
import type { Http } from '@switchboard/client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { gateway, requestAnonymously, signIn } from '../auth';
import { Form, requiredValue } from '../components/form';
import { text } from '../text';
import { AuthCard } from './auth-card';
import { PasswordField, ShowPasswordBox } from './password-fields';

/** `notice`: why the user was signed out; `username`: that user. */
export function LoginPage({ notice, username }: { notice: string | undefined; username: string | undefined }) {
  const needsSetup = useNeedsSetup();
  return <AuthCard>{needsSetup ? <SetupNeeded /> : <LoginForm notice={notice} username={username} />}</AuthCard>;
}

/** Whether the server has no administrator yet, so that nobody can log in. */
function useNeedsSetup(): boolean {
  const [isNeeded, setNeeded] = useState(false);
  useEffect(() => {
    requestAnonymously<Http.SetupBody>('GET', '/api/setup').then(
      ({ needed }) => setNeeded(needed),
      // The login form says what is wrong.
      () => {},
    );
  }, []);
  return isNeeded;
}

function SetupNeeded() {
  return (
    <div data-part="setup-needed">
      <h1>{text.account.setupNeeded}</h1>
      <p>{text.account.setupNeededWords}</p>
      <pre class="command">
        <code>switchboard setup-url</code>
      </pre>
      <p class="soft">{text.account.setupNeededAfter}</p>
    </div>
  );
}

function LoginForm({ notice, username }: { notice: string | undefined; username: string | undefined }) {
  const [isShown, setShown] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    box.current?.querySelector<HTMLInputElement>(username ? '#password' : '#username')?.focus();
  }, []);
  const action = async (form: HTMLFormElement) => {
    const name = requiredValue(form, 'username', text.account.needUsername).trim();
    signIn(await gateway.login(name, requiredValue(form, 'password', text.account.needPassword)));
  };
  return (
    <>
      <h1>{text.account.login}</h1>
      <p class={notice ? 'why' : ''} role="status">{notice}</p>
      <div ref={box}>
        <Form id="login" action={action} label={text.account.login} busyLabel={text.account.loggingIn} refusedField="password" after={<Help />}>
          <label class="field">
            <span>{text.account.username}</span>
            <input class="input" id="username" name="username" autocomplete="username" autocapitalize="none" spellcheck={false} required defaultValue={username} />
          </label>
          <PasswordField id="password" label={text.account.password} isShown={isShown} />
          <ShowPasswordBox label={text.account.showPassword} isShown={isShown} onChange={setShown} />
        </Form>
      </div>
    </>
  );
}

function Help() {
  return (
    <details class="help">
      <summary>{text.account.help}</summary>
      <p>
        {text.account.helpFirst[0]}
        <code>switchboard setup-url</code>
        {text.account.helpFirst[1]}
      </p>
      <p>
        {text.account.helpForgotten[0]}
        <code>switchboard user passwd NAME</code>
        {text.account.helpForgotten[1]}
      </p>
    </details>
  );
}
