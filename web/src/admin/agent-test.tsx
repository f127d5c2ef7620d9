// Agent test: starts a test of an agent and shows the result, which is kept while the page is open.
import { signal } from '@preact/signals';
import type { Http } from '@switchboard/client';
import { useEffect, useState } from 'preact/hooks';
import { explain, request } from '../auth';
import { text } from '../text';

const strings = text.admin.test;
/** How long an agent may take to be ready, and as long again to answer a prompt. */
const MAX_READY_MINUTES = 3;
const MINUTE_MS = 60_000;
/** The gateway times out by itself; this covers one that does not answer at all. */
const TIMEOUT_MARGIN_MS = 30_000;

type Test = { is: 'running'; since: number; minutes: number } | { is: 'done'; result: Http.TestBody } | { is: 'refused'; error: string };

const tests = signal<Readonly<Record<string, Test>>>({});

async function startTest(name: string, prompt: boolean): Promise<void> {
  if (tests.value[name]?.is === 'running') return;
  const setTest = (test: Test) => (tests.value = { ...tests.value, [name]: test });
  const minutes = prompt ? 2 * MAX_READY_MINUTES : MAX_READY_MINUTES;
  setTest({ is: 'running', since: Date.now(), minutes });
  const path = `/api/admin/agents/${encodeURIComponent(name)}/test`;
  try {
    setTest({ is: 'done', result: await request<Http.TestBody>('POST', path, { prompt }, minutes * MINUTE_MS + TIMEOUT_MARGIN_MS) });
  } catch (error) {
    setTest({ is: 'refused', error: explain(error) });
  }
}

/** `onDone`: the agent's state may have changed. */
export function AgentTest({ name, onDone }: { name: string; onDone: () => Promise<void> }) {
  const [includesPrompt, setIncludesPrompt] = useState(false);
  const test = tests.value[name];
  const isBusy = test?.is === 'running';
  return (
    <div class="admin-test" data-part="agent-test" data-state={test?.is ?? 'none'}>
      <div class="admin-test-row">
        <button type="button" class="button quiet" aria-label={strings.doOf(name)} aria-disabled={isBusy} onClick={() => void startTest(name, includesPrompt).then(onDone)} data-part="test-agent">
          {isBusy ? text.common.moment : strings.do}
        </button>
        <label class="admin-choice">
          <input type="checkbox" checked={includesPrompt} disabled={isBusy} onChange={(event) => setIncludesPrompt(event.currentTarget.checked)} />
          <span>
            {strings.prompt}
            <span class="soft small">{strings.promptWhat}</span>
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
  return <p class="soft">{strings.running(Math.max(0, Math.round((now - since) / 1_000)), minutes)}</p>;
}

function Outcome({ name, test }: { name: string; test: Exclude<Test, { is: 'running' }> }) {
  if (test.is === 'refused') return <p class="error">{test.error}</p>;
  const { ok, lines, seconds } = test.result;
  return (
    <>
      <p class={ok ? 'admin-good' : 'error'}>{ok ? strings.ok(seconds) : strings.failed(seconds)}</p>
      {lines.length > 0 && <pre class="admin-lines" tabIndex={0} aria-label={strings.lines(name)}>{lines.join('\n')}</pre>}
    </>
  );
}
