// The door for those who have a password.
import { useEffect, useRef, useState } from 'preact/hooks';
import { enter, gateway } from '../account';
import { filled, Form } from '../parts/form';
import { text } from '../text';
import { Door } from './door';
import { PasswordField, ShowBox } from './password';

/** `why`: what to tell somebody who was signed in until now; `username`: who that was. */
export function Login({ why, username }: { why: string | undefined; username: string | undefined }) {
  const [isShown, setShown] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    box.current?.querySelector<HTMLInputElement>(username ? '#password' : '#username')?.focus();
  }, []);
  const action = async (form: HTMLFormElement) => {
    const name = filled(form, 'username', text.account.needUsername).trim();
    enter(await gateway.login(name, filled(form, 'password', text.account.needPassword)));
  };
  return (
    <Door>
      <h1>{text.account.login}</h1>
      <p class={why ? 'why' : ''} role="status">{why}</p>
      <div ref={box}>
        <Form id="login" action={action} label={text.account.login} busyLabel={text.account.loggingIn} fieldOfRefusal="password" after={<Help />}>
          <label class="field">
            <span>{text.account.username}</span>
            <input class="input" id="username" name="username" autocomplete="username" autocapitalize="none" spellcheck={false} required defaultValue={username} />
          </label>
          <PasswordField id="password" label={text.account.password} isShown={isShown} />
          <ShowBox label={text.account.showPassword} isShown={isShown} onChange={setShown} />
        </Form>
      </div>
    </Door>
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
