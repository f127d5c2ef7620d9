// What administrators tell everybody, at the top of the page until it is closed.
import { signal } from '@preact/signals';
import type { Protocol } from '@switchboard/client';
import { IconButton } from './parts/icon';
import { text } from './text';

interface Shown extends Protocol.Notice {
  id: number;
}

const MOST = 5;
const notices = signal<readonly Shown[]>([]);
let last = 0;

/** Shows a notice. */
export function notice({ level, message }: Protocol.Notice): void {
  notices.value = [...notices.value, { id: (last += 1), level, message }].slice(-MOST);
}

/** Forgets all: they were for whoever was signed in. */
export function dropNotices(): void {
  notices.value = [];
}

/** Where they are shown. Once in the page. */
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
