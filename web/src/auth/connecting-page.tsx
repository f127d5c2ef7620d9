// Connecting page: shown until the gateway has answered.
import { useEffect } from 'preact/hooks';
import { resumeLogin } from '../auth';
import { Form } from '../components/form';
import { text } from '../text';
import { AuthCard } from './auth-card';

const RETRY_MS = 10_000;

/** Waiting for the first answer. */
export function ConnectingPage() {
  return (
    <AuthCard>
      <p class="moment" role="status">{text.common.moment}</p>
    </AuthCard>
  );
}

/** The gateway does not answer. Retries periodically. */
export function UnreachablePage({ reason }: { reason: string }) {
  useEffect(() => {
    const retry = () => void resumeLogin();
    const timer = setInterval(retry, RETRY_MS);
    addEventListener('online', retry);
    return () => {
      clearInterval(timer);
      removeEventListener('online', retry);
    };
  }, []);
  return (
    <AuthCard>
      <h1>{text.account.notConnected}</h1>
      <p role="alert">{reason}</p>
      <Form action={resumeLogin} label={text.common.retry} busyLabel={text.account.connecting} />
    </AuthCard>
  );
}
