// The title of a session, being changed where it stands.
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { explain } from '../account';
import { say } from '../parts/toast';
import { text } from '../text';
import { change } from './acts';
import type { Row } from './list';

const MAX_CHARS = 200;

/** What is being renamed where, and how far. Here, because a row is made anew when it moves. */
const renaming = signal<{ id: string; where: Where; title: string } | undefined>(undefined);

type Where = 'list' | 'head';

/** Begins to rename. */
export function rename(row: Row, where: Where): void {
  renaming.value = { id: row.id, where, title: row.title ?? '' };
}

/** Forgets what was being renamed. */
export function dropRename(): void {
  renaming.value = undefined;
}

/** Is it being renamed there? */
export function isRenamed(id: string, where: Where): boolean {
  return renaming.value?.id === id && renaming.value.where === where;
}

/** Enter and leaving it save, Escape does not. `onDone`: it is over, and the focus needs a place. */
export function Rename({ row, onDone }: { row: Row; onDone: () => void }) {
  const title = renaming.value?.title ?? '';
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const isOver = useRef(false);
  useEffect(() => field.current?.select(), []);

  const done = () => {
    isOver.current = true;
    renaming.value = undefined;
    onDone();
  };
  const save = async () => {
    if (isOver.current || isBusy) return;
    const wanted = title.trim();
    if (wanted === '' || wanted === row.title) return done();
    setBusy(true);
    try {
      await change(row, { title: wanted });
      done();
    } catch (error) {
      say(explain(error), 'error');
      setBusy(false);
      field.current?.focus();
    }
  };
  return (
    <form
      class="rename"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <input
        ref={field}
        class="input"
        aria-label={text.sessions.title}
        value={title}
        maxLength={MAX_CHARS}
        readOnly={isBusy}
        onInput={(event) => {
          if (renaming.value) renaming.value = { ...renaming.value, title: event.currentTarget.value };
        }}
        onBlur={() => void save()}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return;
          event.stopPropagation();
          done();
        }}
      />
    </form>
  );
}
