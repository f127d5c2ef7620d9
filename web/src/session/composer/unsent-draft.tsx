// Unsent draft: shows what was typed into a session that can no longer be opened.
import { useEffect, useState } from 'preact/hooks';
import { currentUser } from '../../auth';
import { navigate } from '../../route';
import { text } from '../../text';
import { emptyDraft, readDraft, saveDraft } from './drafts';

const strings = text.composer;

/** Renders nothing if nothing was typed. */
export function UnsentDraft({ sessionId }: { sessionId: string }) {
  const userId = currentUser()?.id ?? '';
  const [unsentText, setUnsentText] = useState('');
  // After the composer that was here before has saved its draft.
  useEffect(() => setUnsentText(unsentTextOf(userId, sessionId)), [userId, sessionId]);
  if (unsentText === '') return null;
  const moveToNewSession = () => {
    const draft = readDraft(userId, 'new');
    saveDraft(userId, 'new', { ...draft, text: draft.text === '' ? unsentText : `${draft.text}\n\n${unsentText}` });
    saveDraft(userId, sessionId, emptyDraft());
    navigate({ page: 'new' });
  };
  return (
    <div class="unsent-draft" data-part="kept">
      <label class="field">
        <span>{strings.kept}</span>
        <textarea class="input" readOnly rows={4} value={unsentText} />
      </label>
      <button type="button" class="button quiet" onClick={moveToNewSession}>{strings.keptMove}</button>
    </div>
  );
}

function unsentTextOf(userId: string, sessionId: string): string {
  const { text, pending } = readDraft(userId, sessionId);
  return [...pending.map((prompt) => prompt.text), text].filter((part) => part.trim() !== '').join('\n\n');
}
