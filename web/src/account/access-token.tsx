// The token of this login, for programs that somebody tries things with.
import { useRef, useState } from 'preact/hooks';
import { account, request } from '../account';
import { Form } from '../parts/form';
import { base } from '../place';
import { text } from '../text';

/** With less time than this left it is not worth being copied. */
const WORTH_MS = 120_000;

export function AccessToken() {
  const [refused, setRefused] = useState('');
  const field = useRef<HTMLInputElement>(null);
  const copy = async () => {
    setRefused('');
    const { login } = account();
    let me = await request<{ login: { tokenExpiresAt: string } }>('GET', '/api/auth/me');
    if (Date.parse(me.login.tokenExpiresAt) - Date.now() < WORTH_MS) {
      await login.renew(login.token);
      me = await request('GET', '/api/auth/me');
    }
    const expiry = text.account.expiresAt(new Date(me.login.tokenExpiresAt).toLocaleTimeString(undefined, { timeStyle: 'short' }));
    try {
      await navigator.clipboard.writeText(login.token);
      return text.account.tokenCopied(expiry);
    } catch {
      // Browsers refuse it on plain http, for one.
      setRefused(login.token);
      requestAnimationFrame(() => field.current?.select());
      return expiry;
    }
  };
  return (
    <section class="card" data-part="access-token">
      <h2>{text.account.token}</h2>
      <p class="soft">{text.account.tokenWords}</p>
      <pre class="command">
        <code>
          curl -H "Authorization: Bearer <var>TOKEN</var>" {base}/api/auth/me
        </code>
      </pre>
      <Form action={copy} label={text.account.copyToken} busyLabel={text.account.copyingToken} buttonClass="quiet">
        {refused && (
          <label class="field">
            <span>{text.account.copyByHand}</span>
            <input ref={field} class="input mono" value={refused} autocomplete="off" readOnly />
          </label>
        )}
      </Form>
    </section>
  );
}
