// Trying whether an agent works. What came of it stays while the page is open, also for those who look
// at another part meanwhile.
import { signal } from '@preact/signals';
import type { Http } from '@switchboard/client';
import { useEffect, useState } from 'preact/hooks';
import { explain, request } from '../account';
import { text } from '../text';

const words = text.admin.test;
/** How long an agent may take to be ready, and as long again to answer. */
const READY_MINUTES = 3;
const MINUTE_MS = 60_000;
/** The gateway gives up by itself; this is for one that does not answer at all. */
const SPARE_MS = 30_000;

type Test = { is: 'running'; since: number; minutes: number } | { is: 'done'; result: Http.TestBody } | { is: 'refused'; why: string };

const tests = signal<Readonly<Record<string, Test>>>({});

async function start(name: string, prompt: boolean): Promise<void> {
  if (tests.value[name]?.is === 'running') return;
  const put = (test: Test) => (tests.value = { ...tests.value, [name]: test });
  const minutes = prompt ? 2 * READY_MINUTES : READY_MINUTES;
  put({ is: 'running', since: Date.now(), minutes });
  const path = `/api/admin/agents/${encodeURIComponent(name)}/test`;
  try {
    put({ is: 'done', result: await request<Http.TestBody>('POST', path, { prompt }, minutes * MINUTE_MS + SPARE_MS) });
  } catch (error) {
    put({ is: 'refused', why: explain(error) });
  }
}

/** `onDone`: there is news of the agent. */
export function AgentTest({ name, onDone }: { name: string; onDone: () => Promise<void> }) {
  const [withPrompt, setWithPrompt] = useState(false);
  const test = tests.value[name];
  const isBusy = test?.is === 'running';
  return (
    <div class="admin-test" data-part="agent-test" data-state={test?.is ?? 'none'}>
      <div class="admin-test-row">
        <button type="button" class="button quiet" aria-label={words.doOf(name)} aria-disabled={isBusy} onClick={() => void start(name, withPrompt).then(onDone)} data-part="test-agent">
          {isBusy ? text.common.moment : words.do}
        </button>
        <label class="admin-choice">
          <input type="checkbox" checked={withPrompt} disabled={isBusy} onChange={(event) => setWithPrompt(event.currentTarget.checked)} />
          <span>
            {words.prompt}
            <span class="soft small">{words.promptWhat}</span>
          </span>
        </label>
      </div>
      {isBusy && <Progress {...test} />}
      <div role="status">{test && !isBusy && <Outcome name={name} test={test} />}</div>
    </div>
  );
}

function Progress({ since, minutes }: { since: number; minutes: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return <p class="soft">{words.running(Math.max(0, Math.round((now - since) / 1_000)), minutes)}</p>;
}

function Outcome({ name, test }: { name: string; test: Exclude<Test, { is: 'running' }> }) {
  if (test.is === 'refused') return <p class="error">{test.why}</p>;
  const { ok, lines, seconds } = test.result;
  return (
    <>
      <p class={ok ? 'admin-good' : 'error'}>{ok ? words.ok(seconds) : words.failed(seconds)}</p>
      {lines.length > 0 && <pre class="admin-lines" tabIndex={0} aria-label={words.lines(name)}>{lines.join('\n')}</pre>}
    </>
  );
}
