// Activity indicator: what the agent is doing now.
import { text } from '../../text';
import { accessTo } from '../access';
import type { OpenSession } from '../open-session';

export function ActivityIndicator({ session }: { session: OpenSession }) {
  if (!session.isRunning.value) return null;
  const { activity: reported, currentTask, questions } = session.view.value;
  // Not every agent reports that it waits.
  const activity = questions.length > 0 ? 'waiting_for_input' : reported;
  const progress = currentTask?.progress;
  return (
    <p class="working soft" data-part="working" data-activity={activity}>
      <span class={activity === 'waiting_for_input' ? 'dots still' : 'dots'} aria-hidden="true">
        <i />
        <i />
        <i />
      </span>
      <span>{activity === 'waiting_for_input' && accessTo(session) === 'viewer' ? text.transcript.waitingForOthers : text.transcript.activity[activity]}</span>
      {progress && <span class="small">{text.transcript.progress(progress.current, progress.total, progress.description)}</span>}
    </p>
  );
}
