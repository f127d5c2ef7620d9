// Invite page: an invited user sets a password.
import { useState } from 'preact/hooks';
import { gateway, signIn } from '../auth';
import { Form } from '../components/form';
import { text } from '../text';
import { AuthCard, LoginLink } from './auth-card';
import { removeLinkToken, useLinkToken } from './link-token';
import { NewPasswordFields, readNewPassword, ShowPasswordBox } from './password-fields';

const STORAGE_KEY = 'switchboard-invite';

export function InvitePage() {
  const token = useLinkToken(STORAGE_KEY);
  return <AuthCard title={text.account.inviteTab}>{token ? <InviteForm token={token} /> : <NoLink />}</AuthCard>;
}

function InviteForm({ token }: { token: string }) {
  const [isShown, setShown] = useState(false);
  const action = async (form: HTMLFormElement) => {
    const account = await gateway.accept(token, readNewPassword(form));
    removeLinkToken(STORAGE_KEY);
    signIn(account);
  };
  return (
    <>
      <h1>{text.account.invited}</h1>
      <p>{text.account.invitedWords}</p>
      <Form id="invite" action={action} label={text.account.accept} busyLabel={text.account.accepting} after={<RefusedHint />}>
        <NewPasswordFields labels={{ password: text.account.password, repeat: text.account.repeat }} isShown={isShown} />
        <ShowPasswordBox label={text.account.showPasswords} isShown={isShown} onChange={setShown} />
      </Form>
    </>
  );
}

function RefusedHint() {
  return (
    <p class="small soft">
      {text.account.refusedInvite} <LoginLink />
    </p>
  );
}

function NoLink() {
  return (
    <>
      <h1>{text.account.inviteNeedsLink}</h1>
      <p>{text.account.inviteAsk}</p>
      <p>
        {text.account.havePassword} <LoginLink />
      </p>
    </>
  );
}
