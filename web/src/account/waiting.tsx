// Before it is known who is here.
import { start } from '../account';
import { Form } from '../parts/form';
import { text } from '../text';
import { Door } from './door';

/** The gateway is being asked. */
export function Waiting() {
  return (
    <Door>
      <p class="moment" role="status">{text.common.moment}</p>
    </Door>
  );
}

/** The gateway does not answer. */
export function Unreachable({ why }: { why: string }) {
  return (
    <Door>
      <h1>{text.account.notConnected}</h1>
      <p role="alert">{why}</p>
      <Form action={start} label={text.common.retry} busyLabel={text.account.connecting} />
    </Door>
  );
}
