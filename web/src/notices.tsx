// Notices: messages from administrators, at the top of the page until closed.
import { signal } from '@preact/signals';
import type { Protocol } from '@switchboard/client';
import { IconButton } from './components/icon';
import { text } from './text';

interface ShownNotice extends Protocol.Notice {
  id: number;
}

const MAX_NOTICES = 5;
const notices = signal<readonly ShownNotice[]>([]);
let lastId = 0;

export function showNotice({ level, message }: Protocol.Notice): void {
  notices.value = [...notices.value, { id: (lastId += 1), level, message }].slice(-MAX_NOTICES);
}

/** Removes all: they were meant for the user who was signed in. */
export function clearNotices(): void {
  notices.value = [];
}

/** Renders the notices. Mount once. */
export function Notices() {
  const close = (id: number) => (notices.value = notices.value.filter((shown) => shown.id !== id));
  return (
    <section class="notices" role="status" aria-label={text.sessions.notices}>
      {notices.value.map(({ id, level, message }) => (
        <div key={id} class={`notice ${level}`} data-part="notice" data-level={level}>
          <p>
            <strong>{text.sessions.notice[level]}:</strong> {message}
          </p>
          <IconButton name="close" label={text.sessions.closeNotice} onClick={() => close(id)} />
        </div>
      ))}
    </section>
  );
}
