// The door for those who were invited.
import { useState } from 'preact/hooks';
import { enter, gateway } from '../account';
import { Form } from '../parts/form';
import { text } from '../text';
import { Door, ToLogin } from './door';
import { dropLinkToken, useLinkToken } from './link';
import { newPasswordIn, NewPassword, ShowBox } from './password';

const KEY = 'switchboard-invite';

export function Invite() {
  const token = useLinkToken(KEY);
  return <Door title={text.account.inviteTab}>{token ? <InviteForm token={token} /> : <NoLink />}</Door>;
}

function InviteForm({ token }: { token: string }) {
  const [isShown, setShown] = useState(false);
  const action = async (form: HTMLFormElement) => {
    const account = await gateway.accept(token, newPasswordIn(form));
    dropLinkToken(KEY);
    enter(account);
  };
  return (
    <>
      <h1>{text.account.invited}</h1>
      <p>{text.account.invitedWords}</p>
      <Form id="invite" action={action} label={text.account.accept} busyLabel={text.account.accepting} after={<Refused />}>
        <NewPassword labels={{ password: text.account.password, repeat: text.account.repeat }} isShown={isShown} />
        <ShowBox label={text.account.showPasswords} isShown={isShown} onChange={setShown} />
      </Form>
    </>
  );
}

function Refused() {
  return (
    <p class="small soft">
      {text.account.refusedInvite} <ToLogin />
    </p>
  );
}

function NoLink() {
  return (
    <>
      <h1>{text.account.inviteNeedsLink}</h1>
      <p>{text.account.inviteAsk}</p>
      <p>
        {text.account.havePassword} <ToLogin />
      </p>
    </>
  );
}
