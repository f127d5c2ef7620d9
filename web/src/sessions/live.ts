// Carries what happens in the open session into the list, before the list hears of it.
import { effect, untracked } from '@preact/signals';
import { current } from '../session/current';
import { list } from './list';
import type { Row } from './list';

/** Begins, until the returned function is called. */
export function followOpen(): () => void {
  let before: string | undefined;
  return effect(() => {
    const session = current.value;
    if (!session) {
      before = undefined;
      return;
    }
    const line = session.connection.value.is;
    // What a broken line told last is no news.
    if ((line !== 'live' && line !== 'resumed') || !session.isReady.value) return;
    const { questions, queue, title } = session.view.value;
    const status = questions.length > 0 ? 'waiting' : session.isRunning.value ? 'running' : 'idle';
    const now = [session.id, status, questions.length, queue.length, title].join('\n');
    if (now === before) return;
    const isNews = before?.startsWith(`${session.id}\n`) === true;
    before = now;
    untracked(() => show(session.id, { status, openQuestions: questions.length, queuedPrompts: queue.length }, isNews));
  });
}

function show(id: string, changes: Partial<Row>, isNews: boolean): void {
  const row = list.row(id);
  if (row && row.status !== 'archived') list.patch(id, changes);
  if (isNews || !row) list.refreshSoon();
}
