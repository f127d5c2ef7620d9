// Plan: the agent's plan and its progress.
import { useRef } from 'preact/hooks';
import { Icon } from '../../components/icon';
import { text } from '../../text';
import type { OpenSession } from '../open-session';

const DONE = new Set(['completed', 'done']);
const IN_PROGRESS = new Set(['in_progress', 'running']);

export function Plan({ session }: { session: OpenSession }) {
  const { plan, currentTask } = session.view.value;
  const planRun = useRef({ plan, run: currentTask?.id });
  if (planRun.current.plan !== plan) planRun.current = { plan, run: currentTask?.id };
  if (plan.length === 0) return null;
  // A completed plan is hidden once its run has ended.
  const hasRunEnded = !session.isRunning.value || planRun.current.run !== currentTask?.id;
  if (hasRunEnded && plan.every(({ status }) => DONE.has(status))) return null;
  const done = plan.filter(({ status }) => DONE.has(status)).length;
  const currentStep = plan.find(({ status }) => IN_PROGRESS.has(status));
  return (
    <details class="plan" data-part="plan">
      <summary>
        <Icon name="list" />
        <strong>{text.transcript.plan}</strong>
        <span class="soft">{text.transcript.planDone(done, plan.length)}</span>
        {currentStep && <span class="plan-now">{currentStep.title}</span>}
      </summary>
      <ol class="plain">
        {plan.map(({ title, status }, index) => (
          <li key={index} class={DONE.has(status) ? 'done' : IN_PROGRESS.has(status) ? 'now' : ''}>
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
