// What waits for its turn.
import { useState } from 'preact/hooks';
import type { Protocol } from '@switchboard/client';
import { explain } from '../../account';
import { Icon, IconButton } from '../../parts/icon';
import { Menu, MenuItem } from '../../parts/menu';
import { say } from '../../parts/toast';
import { text } from '../../text';
import type { OpenSession } from '../open';

const words = text.composer;

export function Queue({ session, canChange }: { session: OpenSession; canChange: boolean }) {
  const { queue } = session.view.value;
  if (queue.length === 0) return null;
  return (
    <section class="queue" data-part="queue" aria-label={words.queued(queue.length)}>
      <header>
        <h3 class="small soft">{words.queued(queue.length)}</h3>
        {canChange && <QueueModes session={session} />}
      </header>
      <ol class="plain">
        {queue.map((task) => <Task key={task.taskId} session={session} task={task} canChange={canChange} />)}
      </ol>
    </section>
  );
}

function Task({ session, task, canChange }: { session: OpenSession; task: Protocol.QueuedTask; canChange: boolean }) {
  const [isBusy, setBusy] = useState(false);
  const withdraw = async () => {
    if (isBusy) return;
    setBusy(true);
    try {
      await session.send('WITHDRAW', { taskId: task.taskId });
      document.getElementById('prompt')?.focus();
    } catch (error) {
      say(explain(error), 'error');
    }
    setBusy(false);
  };
  return (
    <li data-task={task.taskId}>
      <span class="badge">{words.queuedKinds[task.kind] ?? task.kind}</span>
      <span class="queue-text" title={task.text}>{task.text}</span>
      {task.by !== undefined && <span class="soft small queue-by">{words.queuedBy(task.by)}</span>}
      {canChange && <IconButton name="close" label={words.withdrawOf(task.text.slice(0, 40))} data-part="withdraw" aria-disabled={isBusy} onClick={withdraw} />}
    </li>
  );
}

function QueueModes({ session }: { session: OpenSession }) {
  const { queueModes } = session.view.value;
  const choose = async (change: Protocol.SetQueueMode) => {
    try {
      await session.send('SET_QUEUE_MODE', change);
    } catch (error) {
      say(explain(error), 'error');
    }
  };
  const group = (name: 'steering' | 'followUp', title: string) => (
    <div role="group" aria-label={title}>
      <p class="menu-title small soft" aria-hidden="true">{title}</p>
      {(['one-at-a-time', 'all'] as const).map((mode) => (
        <MenuItem key={mode} isChosen={queueModes[name] === mode} onChoose={() => void choose({ [name]: mode })}>
          <Tick isOn={queueModes[name] === mode} />
          {mode === 'all' ? words.all : words.oneAtATime}
        </MenuItem>
      ))}
    </div>
  );
  return (
    <Menu button={<Icon name="dots" />} label={words.queueModes} part="queue-modes">
      {group('steering', words.steeringModes)}
      {group('followUp', words.followUpModes)}
    </Menu>
  );
}

/** The mark of what is chosen. */
export function Tick({ isOn }: { isOn: boolean }) {
  return <span class={`tick ${isOn ? '' : 'off'}`}><Icon name="check" /></span>;
}
