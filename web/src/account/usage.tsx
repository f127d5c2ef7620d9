// Usage: what the signed-in user stores and sends, and may.
import type { Http } from '@switchboard/client';
import { useEffect, useState } from 'preact/hooks';
import { explain, request } from '../auth';
import { UsageList } from '../components/usage-list';
import { useIsMounted } from '../components/use-is-mounted';
import { text } from '../text';

export function Usage() {
  const [usage, setUsage] = useState<Http.UsageBody>();
  const [error, setError] = useState('');
  const isAlive = useIsMounted();
  const load = async () => {
    setError('');
    try {
      const read = await request<Http.UsageBody>('GET', '/api/auth/usage');
      if (isAlive.current) setUsage(read);
    } catch (failure) {
      if (isAlive.current) setError(explain(failure));
    }
  };
  useEffect(() => void load(), []);
  return (
    <section class="card" data-part="usage">
      <h2>{text.usage.title}</h2>
      <p class="soft">{text.usage.words}</p>
      {usage ? <UsageList usage={usage} /> : !error && <p class="soft">{text.common.loading}</p>}
      <p class="error" role="alert">{error}</p>
      <button type="button" class="button quiet small" onClick={() => void load()}>{text.usage.reload}</button>
    </section>
  );
}
