// What can be done with an entry: copied, and gone on from in another session.
import { useState } from 'preact/hooks';
import { explain } from '../../account';
import { Icon } from '../../parts/icon';
import { say } from '../../parts/toast';
import { go } from '../../place';
import { text } from '../../text';
import { CopyButton } from '../markdown/copy';
import { branch } from '../open';
import type { OpenSession } from '../open';
import { branchPoint } from '../timeline';
import type { AnswerEntry, EndEntry, PromptEntry } from '../timeline';

export function Actions({ session, entry }: { session: OpenSession; entry: PromptEntry | AnswerEntry | EndEntry }) {
  return (
    <div class="entry-actions">
      {entry.kind !== 'end' && <CopyButton what={() => entry.text} label={entry.kind === 'prompt' ? text.transcript.copyPrompt : text.transcript.copyAnswer} />}
      <Branch session={session} entry={entry} />
    </div>
  );
}

function Branch({ session, entry }: { session: OpenSession; entry: PromptEntry | AnswerEntry | EndEntry }) {
  const [isBusy, setBusy] = useState(false);
  // After a prompt its run is under way and would count as cancelled: whoever goes on from there asks anew.
  const isBefore = entry.kind === 'prompt';
  if (!session.can('branch') || (isBefore ? entry.offset <= 1 : entry.through === 0)) return null;
  const onClick = async () => {
    if (isBusy) return;
    setBusy(true);
    try {
      const id = await branch(session, isBefore ? entry.offset - 1 : branchPoint(session.timeline.value, entry));
      say(text.transcript.branched);
      go({ page: 'session', id });
    } catch (error) {
      say(explain(error), 'error');
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" class="quiet-button" data-part="branch" aria-disabled={isBusy} onClick={() => void onClick()}>
      <Icon name="branch" />
      <span>{isBusy ? text.transcript.branching : isBefore ? text.transcript.branchBefore : text.transcript.branch}</span>
    </button>
  );
}
