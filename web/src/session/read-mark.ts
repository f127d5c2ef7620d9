// Read mark: tells the gateway how far the user has read, for the unread marks on all devices.
//
// Sent when there is something worth having read (a run has ended, a question is open) and when the user
// leaves; not for every event of a running answer.
import { effect, untracked } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { account } from '../auth';
import { sessionList } from '../sessions/session-list';
import type { OpenSession } from './open-session';

export function useReadMark(session: OpenSession): void {
  useEffect(() => {
    let markedOffset = 0;
    const mark = () => {
      const { offset } = session.view.peek();
      if (document.hidden || !session.isReady.peek() || session.connection.peek().is === 'ended' || offset <= markedOffset) return;
      markedOffset = offset;
      sessionList.markRead(session.id);
      // An unread mark that stays for now is no reason to bother the user.
      account().login.fetch(`/api/sessions/${session.id}/read`, { method: 'PUT', body: { offset } }).catch(() => {});
    };
    const stop = effect(() => {
      const isWorthIt = session.isReady.value && (!session.isRunning.value || session.view.value.questions.length > 0);
      if (isWorthIt) untracked(mark);
    });
    document.addEventListener('visibilitychange', mark);
    return () => {
      stop();
      document.removeEventListener('visibilitychange', mark);
      mark();
    };
  }, [session]);
}
