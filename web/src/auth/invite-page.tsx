// Invite page: an invited user sets a password.
import type { Http } from '@switchboard/client';
import { Failure } from '@switchboard/client';
import { useEffect, useState } from 'preact/hooks';
import { explain, gateway, requestAnonymously, signIn } from '../auth';
import { Form } from '../components/form';
import { text } from '../text';
import { AuthCard, LoginLink } from './auth-card';
import { removeLinkToken, useLinkToken } from './link-token';
import { NewPasswordFields, readNewPassword, ShowPasswordBox } from './password-fields';

const STORAGE_KEY = 'switchboard-invite';
const strings = text.account;

export function InvitePage() {
  const token = useLinkToken(STORAGE_KEY);
  return <AuthCard title={strings.inviteTab}>{token ? <Invitation key={token} token={token} /> : <NoLink />}</AuthCard>;
}

type Shown = { is: 'loading' } | { is: 'valid'; invitation: Http.InvitationBody } | { is: 'refused' } | { is: 'failed'; error: string };

/** Shows whom the link is for and who made it, before a password is asked for. */
function Invitation({ token }: { token: string }) {
  const [shown, setShown] = useState<Shown>({ is: 'loading' });
  const load = () => {
    setShown({ is: 'loading' });
    requestAnonymously<Http.InvitationBody>('POST', '/api/invites/show', { token }).then(
      (invitation) => setShown({ is: 'valid', invitation }),
      (error: unknown) => setShown(error instanceof Failure && error.status === 403 ? { is: 'refused' } : { is: 'failed', error: explain(error) }),
    );
  };
  useEffect(load, [token]);
  switch (shown.is) {
    case 'loading':
      return <p class="moment" role="status">{text.common.moment}</p>;
    case 'refused':
      return <NoLink />;
    case 'failed':
      return (
        <>
          <h1>{strings.notConnected}</h1>
          <p role="alert">{shown.error}</p>
          <button type="button" class="button" onClick={load}>{text.common.retry}</button>
        </>
      );
    default:
      return <InviteForm token={token} invitation={shown.invitation} />;
  }
}

function InviteForm({ token, invitation: { username, invitedBy, hasPassword } }: { token: string; invitation: Http.InvitationBody }) {
  const [isShown, setShown] = useState(false);
  const action = async (form: HTMLFormElement) => {
    const account = await gateway.accept(token, readNewPassword(form));
    removeLinkToken(STORAGE_KEY);
    signIn(account);
  };
  const from = invitedBy ?? undefined;
  return (
    <>
      <h1>{hasPassword ? strings.resetTitle : strings.invited(username)}</h1>
      <p data-part="invitation">{hasPassword ? strings.resetWords(username) : strings.invitedWords(from)}</p>
      <Form id="invite" action={action} label={hasPassword ? strings.resetDo : strings.accept} busyLabel={strings.accepting} after={<RefusedHint />}>
        <label class="field">
          <span>{strings.username}</span>
          <input class="input" name="username" autocomplete="username" value={username} readOnly />
        </label>
        <NewPasswordFields labels={{ password: strings.password, repeat: strings.repeat }} isShown={isShown} />
        <ShowPasswordBox label={strings.showPasswords} isShown={isShown} onChange={setShown} />
      </Form>
    </>
  );
}

function RefusedHint() {
  return (
    <p class="small soft">
      {strings.refusedInvite} <LoginLink />
    </p>
  );
}

function NoLink() {
  return (
    <>
      <h1>{strings.inviteNeedsLink}</h1>
      <p>{strings.inviteAsk}</p>
      <p>
        {strings.havePassword} <LoginLink />
      </p>
    </>
  );
}
