// Rename field: edits a session's title in place.
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { explain } from '../auth';
import { showToast } from '../components/toast';
import { text } from '../text';
import { changeSession } from './session-actions';
import type { Row } from './session-list';

const MAX_CHARS = 200;

/** Kept outside of the row, which is recreated when it moves in the list. */
const renaming = signal<{ id: string; where: RenamePlace; title: string } | undefined>(undefined);

type RenamePlace = 'list' | 'head';

export function startRename(row: Row, where: RenamePlace): void {
  renaming.value = { id: row.id, where, title: row.title ?? '' };
}

export function cancelRename(): void {
  renaming.value = undefined;
}

export function isRenaming(id: string, where: RenamePlace): boolean {
  return renaming.value?.id === id && renaming.value.where === where;
}

/** Enter and blur save, Escape does not. `onDone`: closed; move the focus. */
export function RenameField({ row, onDone }: { row: Row; onDone: () => void }) {
  const title = renaming.value?.title ?? '';
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const isDone = useRef(false);
  useEffect(() => field.current?.select(), []);

  const done = () => {
    isDone.current = true;
    renaming.value = undefined;
    onDone();
  };
  const save = async () => {
    if (isDone.current || isBusy) return;
    const newTitle = title.trim();
    if (newTitle === '' || newTitle === row.title) return done();
    setBusy(true);
    try {
      await changeSession(row, { title: newTitle });
      done();
    } catch (error) {
      showToast(explain(error), 'error');
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
