// Queue: the prompts that wait for the current run.
import type { Protocol } from '@switchboard/client';
import { explain } from '../../auth';
import { Icon, IconButton } from '../../components/icon';
import { CheckMark, Menu, MenuItem } from '../../components/menu';
import { showToast } from '../../components/toast';
import { useToastedAction } from '../../components/use-action';
import { text } from '../../text';
import type { OpenSession } from '../open-session';

const strings = text.composer;

export function Queue({ session, canChange }: { session: OpenSession; canChange: boolean }) {
  const { queue } = session.view.value;
  if (queue.length === 0) return null;
  return (
    <section class="queue" data-part="queue" aria-label={strings.queued(queue.length)}>
      <header>
        <h3 class="small soft">{strings.queued(queue.length)}</h3>
        {canChange && <QueueModes session={session} />}
      </header>
      <ol class="plain">
        {queue.map((task) => <QueuedPrompt key={task.taskId} session={session} task={task} canChange={canChange} />)}
      </ol>
    </section>
  );
}

function QueuedPrompt({ session, task, canChange }: { session: OpenSession; task: Protocol.QueuedTask; canChange: boolean }) {
  const { isBusy, run: withdraw } = useToastedAction(async () => {
    await session.send('WITHDRAW', { taskId: task.taskId });
    document.getElementById('prompt')?.focus();
  });
  return (
    <li data-task={task.taskId}>
      <span class="badge">{strings.queuedKinds[task.kind] ?? task.kind}</span>
      <span class="queue-text" title={task.text}>{task.text}</span>
      {task.by !== undefined && <span class="soft small queue-by">{strings.queuedBy(task.by)}</span>}
      {canChange && <IconButton name="close" label={strings.withdrawOf(task.text.slice(0, 40))} data-part="withdraw" aria-disabled={isBusy} onClick={withdraw} />}
    </li>
  );
}

function QueueModes({ session }: { session: OpenSession }) {
  const { queueModes } = session.view.value;
  const choose = (change: Protocol.SetQueueMode) => session.send('SET_QUEUE_MODE', change).catch((error: unknown) => showToast(explain(error), 'error'));
  const group = (name: 'steering' | 'followUp', title: string) => (
    <div role="group" aria-label={title}>
      <p class="menu-title small soft" aria-hidden="true">{title}</p>
      {(['one-at-a-time', 'all'] as const).map((mode) => (
        <MenuItem key={mode} isChosen={queueModes[name] === mode} onChoose={() => void choose({ [name]: mode })}>
          <CheckMark isOn={queueModes[name] === mode} />
          {mode === 'all' ? strings.all : strings.oneAtATime}
        </MenuItem>
      ))}
    </div>
  );
  return (
    <Menu button={<Icon name="dots" />} label={strings.queueModes} part="queue-modes">
      {group('steering', strings.steeringModes)}
      {group('followUp', strings.followUpModes)}
    </Menu>
  );
}
