// Plan: the agent's plan. Pinned below the transcript while its run goes on, an entry of the conversation
// afterwards.
import type { Protocol } from '@switchboard/client';
import { Icon } from '../../components/icon';
import { text } from '../../text';
import type { OpenSession } from '../open-session';
import type { PlanEntry } from '../timeline';

const DONE = new Set(['completed', 'done']);
const IN_PROGRESS = new Set(['in_progress', 'running']);
/** A plan is among the newest entries of its run. */
const RECENT_ENTRIES = 500;

/** The plan of the current run. */
export function PinnedPlan({ session }: { session: OpenSession }) {
  const task = session.view.value.currentTask;
  if (!session.isRunning.value || !task) return null;
  const isCurrent = (entry: { kind: string; taskId?: string }): entry is PlanEntry => entry.kind === 'plan' && entry.taskId === task.id;
  const plan = session.timeline.value.entries.slice(-RECENT_ENTRIES).find(isCurrent);
  return plan ? <Plan steps={plan.steps} isPinned /> : null;
}

export function Plan({ steps, isPinned = false }: { steps: readonly Protocol.Step[]; isPinned?: boolean }) {
  const done = steps.filter(({ status }) => DONE.has(status)).length;
  const currentStep = isPinned ? steps.find(({ status }) => IN_PROGRESS.has(status)) : undefined;
  return (
    <details class={`plan ${isPinned ? 'pinned' : ''}`} data-part={isPinned ? 'plan' : 'past-plan'}>
      <summary>
        <Icon name="list" />
        <strong>{text.transcript.plan}</strong>
        <span class="soft">{text.transcript.planDone(done, steps.length)}</span>
        {currentStep && <span class="plan-now">{currentStep.title}</span>}
      </summary>
      <ol class="plain">
        {steps.map(({ title, status }, index) => (
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
