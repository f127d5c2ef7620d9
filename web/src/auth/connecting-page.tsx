// Before it is known who is here.
import { useEffect } from 'preact/hooks';
import { start } from '../account';
import { Form } from '../parts/form';
import { text } from '../text';
import { Door } from './door';

const RETRY_MS = 10_000;

/** The gateway is being asked. */
export function Waiting() {
  return (
    <Door>
      <p class="moment" role="status">{text.common.moment}</p>
    </Door>
  );
}

/** The gateway does not answer. It is asked again now and then. */
export function Unreachable({ why }: { why: string }) {
  useEffect(() => {
    const again = () => void start();
    const timer = setInterval(again, RETRY_MS);
    addEventListener('online', again);
    return () => {
      clearInterval(timer);
      removeEventListener('online', again);
    };
  }, []);
  return (
    <Door>
      <h1>{text.account.notConnected}</h1>
      <p role="alert">{why}</p>
      <Form action={start} label={text.common.retry} busyLabel={text.account.connecting} />
    </Door>
  );
}
