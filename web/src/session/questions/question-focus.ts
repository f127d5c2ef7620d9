// Question focus: an open question owns the keyboard.
//
// A question for a text takes the focus from an empty prompt box: what is typed next is its answer, perhaps a
// secret, and must never become a prompt. A box with text in it keeps the focus; there, Enter leads to the
// question.
import { useEffect, useRef } from 'preact/hooks';
import type { Protocol } from '@switchboard/client';
import { accessTo } from '../access';
import { isTouch } from '../composer/prompt-box';
import type { OpenSession } from '../open-session';

/** How often to look for a card that is being rendered. */
const MAX_FRAMES = 60;

/** Calls `show` when a question wants the focus. */
export function useQuestionFocus(session: OpenSession, oldest: Protocol.Question | undefined, show: () => void): void {
  const latestShow = useRef(show);
  latestShow.current = show;
  const id = oldest?.questionId;
  const isReady = session.isReady.value;
  useEffect(() => {
    if (!isReady || oldest?.kind !== 'prompt' || accessTo(session) === 'viewer' || !isFocusFree()) return;
    let frames = 0;
    const showWhenRendered = () => {
      frames += 1;
      if (document.querySelector(`[data-question="${id}"]`)) latestShow.current();
      else if (frames < MAX_FRAMES) frame = requestAnimationFrame(showWhenRendered);
    };
    let frame = requestAnimationFrame(showWhenRendered);
    return () => cancelAnimationFrame(frame);
  }, [id, isReady]);
  useEffect(() => session.questionWanted.subscribe((count) => void (count > 0 && latestShow.current())), [session]);
}

/** Whether nothing is being typed that the question could interrupt. */
function isFocusFree(): boolean {
  const focused = document.activeElement;
  if (focused instanceof HTMLTextAreaElement && focused.id === 'prompt') return focused.value.trim() === '';
  // Without a field in use, the focus would only open a phone's keyboard.
  return (focused === null || focused === document.body) && !isTouch();
}
