// What is told to those who listen: answers once they are finished, not each piece of them.
import { useSignal, useSignalEffect } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { text } from '../../text';
import type { OpenSession } from '../open';
import type { Entry } from '../timeline';

/** Longer answers are announced with their beginning; the rest is in the conversation. */
const MOST_CHARS = 600;
/** Only the newest entries can have something new. */
const NEWEST = 8;

export function News({ session }: { session: OpenSession }) {
  const words = useSignal('');
  /** Up to which event everything was told; nothing of what was there in the beginning is news. */
  const told = useRef<number | undefined>(undefined);
  useSignalEffect(() => {
    const { entries, offset } = session.timeline.value;
    if (!session.isReady.value) return;
    const since = told.current;
    if (since !== undefined) {
      const said = entries.slice(-NEWEST).filter(({ through }) => through > since).map(announced).filter((one) => one !== '');
      if (said.length > 0) words.value = said.join(' ');
    }
    // An answer that is still being said is told later.
    const open = entries.slice(-NEWEST).find((entry) => entry.kind === 'answer' && !entry.isComplete);
    told.current = open ? Math.min(open.offset - 1, offset) : offset;
  });
  return (
    <p class="heard" role="status" data-part="news">
      {words}
    </p>
  );
}

function announced(entry: Entry): string {
  if (entry.kind === 'answer' && entry.isComplete && entry.text) {
    const start = entry.text.length > MOST_CHARS ? `${entry.text.slice(0, MOST_CHARS)}…` : entry.text;
    return text.transcript.finished(start);
  }
  if (entry.kind === 'end') return entry.status === 'error' ? text.transcript.failed : text.transcript.cancelled;
  return '';
}
