// Announcer: tells screen readers about finished answers and ended runs.
import { useSignal, useSignalEffect } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { text } from '../../text';
import type { OpenSession } from '../open-session';
import type { Entry } from '../timeline';

/** Longer answers are announced only with their beginning. */
const MAX_CHARS = 600;
/** Only the newest entries can have news. */
const RECENT_ENTRIES = 8;

export function Announcer({ session }: { session: OpenSession }) {
  const announcement = useSignal('');
  /** Everything up to this offset was announced or was there when the page opened. */
  const announcedOffset = useRef<number | undefined>(undefined);
  useSignalEffect(() => {
    const { entries, offset } = session.timeline.value;
    if (!session.isReady.value) return;
    const since = announcedOffset.current;
    if (since !== undefined) {
      const announcements = entries.slice(-RECENT_ENTRIES).filter(({ through }) => through > since).map(announcementOf).filter((one) => one !== '');
      if (announcements.length > 0) announcement.value = announcements.join(' ');
    }
    // Announce an unfinished answer later.
    const open = entries.slice(-RECENT_ENTRIES).find((entry) => entry.kind === 'answer' && !entry.isComplete);
    announcedOffset.current = open ? Math.min(open.offset - 1, offset) : offset;
  });
  return (
    <p class="visually-hidden" role="status" data-part="news">
      {announcement}
    </p>
  );
}

function announcementOf(entry: Entry): string {
  if (entry.kind === 'answer' && entry.isComplete && entry.text) {
    const start = entry.text.length > MAX_CHARS ? `${entry.text.slice(0, MAX_CHARS)}…` : entry.text;
    return text.transcript.finished(start);
  }
  if (entry.kind === 'end') return entry.status === 'error' ? text.transcript.failed : text.transcript.cancelled;
  return '';
}
