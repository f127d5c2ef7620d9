// What the agent means to do, always in sight.
import { useRef } from 'preact/hooks';
import { Icon } from '../../parts/icon';
import { text } from '../../text';
import type { OpenSession } from '../open';

const DONE = new Set(['completed', 'done']);
const NOW = new Set(['in_progress', 'running']);

export function Plan({ session }: { session: OpenSession }) {
  const { plan, currentTask } = session.view.value;
  const made = useRef({ plan, run: currentTask?.id });
  if (made.current.plan !== plan) made.current = { plan, run: currentTask?.id };
  if (plan.length === 0) return null;
  // A plan that was carried out is of no use to the next run.
  const isOver = !session.isRunning.value || made.current.run !== currentTask?.id;
  if (isOver && plan.every(({ status }) => DONE.has(status))) return null;
  const done = plan.filter(({ status }) => DONE.has(status)).length;
  const now = plan.find(({ status }) => NOW.has(status));
  return (
    <details class="plan" data-part="plan">
      <summary>
        <Icon name="list" />
        <strong>{text.transcript.plan}</strong>
        <span class="soft">{text.transcript.planDone(done, plan.length)}</span>
        {now && <span class="plan-now">{now.title}</span>}
      </summary>
      <ol class="plain">
        {plan.map(({ title, status }, place) => (
          <li key={place} class={DONE.has(status) ? 'done' : NOW.has(status) ? 'now' : ''}>
            <span class="plan-mark" aria-hidden="true">
              {DONE.has(status) && <Icon name="check" />}
            </span>
            <span>{title}</span>
            <span class="soft small">{text.transcript.steps[status] ?? status}</span>
          </li>
        ))}
      </ol>
    </details>
  );
}
