// Access token: copies the token of this login, for trying out the API.
import { useRef, useState } from 'preact/hooks';
import { account, request } from '../auth';
import { Form } from '../components/form';
import { baseUrl } from '../route';
import { text } from '../text';

/** A token that expires sooner is renewed before it is copied. */
const MIN_REMAINING_MS = 120_000;

export function AccessToken() {
  const [uncopiedToken, setUncopiedToken] = useState('');
  const field = useRef<HTMLInputElement>(null);
  const copy = async () => {
    setUncopiedToken('');
    const { login } = account();
    let me = await request<{ login: { tokenExpiresAt: string } }>('GET', '/api/auth/me');
    if (Date.parse(me.login.tokenExpiresAt) - Date.now() < MIN_REMAINING_MS) {
      await login.renew(login.token);
      me = await request('GET', '/api/auth/me');
    }
    const expiry = text.account.expiresAt(new Date(me.login.tokenExpiresAt).toLocaleTimeString(undefined, { timeStyle: 'short' }));
    try {
      await navigator.clipboard.writeText(login.token);
      return text.account.tokenCopied(expiry);
    } catch {
      // Browsers refuse the clipboard on plain http.
      setUncopiedToken(login.token);
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
          curl -H "Authorization: Bearer <var>TOKEN</var>" {baseUrl}/api/auth/me
        </code>
      </pre>
      <Form action={copy} label={text.account.copyToken} busyLabel={text.account.copyingToken} buttonClass="quiet">
        {uncopiedToken && (
          <label class="field">
            <span>{text.account.copyByHand}</span>
            <input ref={field} class="input mono" value={uncopiedToken} autocomplete="off" readOnly />
          </label>
        )}
      </Form>
    </section>
  );
}
