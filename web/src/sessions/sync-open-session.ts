// Sync: copies the live state of the open session into the list, before a poll brings it.
import { effect, untracked } from '@preact/signals';
import { currentSession } from '../session/current-session';
import { sessionList } from './session-list';
import type { Row } from './session-list';

/** Starts; the returned function stops it. */
export function syncOpenSession(): () => void {
  let previous: string | undefined;
  return effect(() => {
    const session = currentSession.value;
    if (!session) {
      previous = undefined;
      return;
    }
    // Without a live connection the state may be outdated.
    if (!session.isLive.value || !session.isReady.value) return;
    const { questions, queue, title } = session.view.value;
    const status = questions.length > 0 ? 'waiting' : session.isRunning.value ? 'running' : 'idle';
    const snapshot = [session.id, status, questions.length, queue.length, title].join('\n');
    if (snapshot === previous) return;
    const hasChanged = previous?.startsWith(`${session.id}\n`) === true;
    previous = snapshot;
    untracked(() => updateRow(session.id, { status, openQuestions: questions.length, queuedPrompts: queue.length }, hasChanged));
  });
}

function updateRow(id: string, changes: Partial<Row>, hasChanged: boolean): void {
  const row = sessionList.row(id);
  if (row && row.status !== 'archived') sessionList.patchRow(id, changes);
  if (hasChanged || !row) sessionList.refreshSoon();
}
