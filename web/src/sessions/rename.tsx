// The title of a session, being changed where it stands.
import { useEffect, useRef, useState } from 'preact/hooks';
import { explain } from '../account';
import { say } from '../parts/toast';
import { text } from '../text';
import { change } from './acts';
import type { Row } from './list';

const MAX_CHARS = 200;

/** Enter and leaving it save, Escape does not. */
export function Rename({ row, onDone }: { row: Row; onDone: () => void }) {
  const [title, setTitle] = useState(row.title ?? '');
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const isOver = useRef(false);
  useEffect(() => field.current?.select(), []);

  const done = () => {
    isOver.current = true;
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
        onInput={(event) => setTitle(event.currentTarget.value)}
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
