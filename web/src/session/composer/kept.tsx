// What somebody had typed into a session that cannot be opened any more.
import { useState } from 'preact/hooks';
import { standing } from '../../account';
import { go } from '../../place';
import { text } from '../../text';
import { emptyDraft, keepDraft, readDraft } from './drafts';

const words = text.composer;

/** Nothing, if nothing was typed. */
export function Kept({ session }: { session: string }) {
  const now = standing.value;
  const user = now.is === 'in' ? now.user.id : '';
  const [typed] = useState(() => typedIn(user, session));
  if (typed === '') return null;
  const move = () => {
    const draft = readDraft(user, 'new');
    keepDraft(user, 'new', { ...draft, text: draft.text === '' ? typed : `${draft.text}\n\n${typed}` });
    keepDraft(user, session, emptyDraft());
    go({ page: 'new' });
  };
  return (
    <div class="kept" data-part="kept">
      <label class="field">
        <span>{words.kept}</span>
        <textarea class="input" readOnly rows={4} value={typed} />
      </label>
      <button type="button" class="button quiet" onClick={move}>{words.keptMove}</button>
    </div>
  );
}

function typedIn(user: string, session: string): string {
  const { text, letters } = readDraft(user, session);
  return [...letters.map((letter) => letter.text), text].filter((part) => part.trim() !== '').join('\n\n');
}
