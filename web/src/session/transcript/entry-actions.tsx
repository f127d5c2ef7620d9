// Entry actions: copy an entry, or branch the session after it.
import { CopyButton } from '../../components/copy-button';
import { Icon } from '../../components/icon';
import { showToast } from '../../components/toast';
import { useToastedAction } from '../../components/use-action';
import { navigate } from '../../route';
import { text } from '../../text';
import { branchSession } from '../open-session';
import type { OpenSession } from '../open-session';
import { branchPoint } from '../timeline';
import type { AnswerEntry, EndEntry, PromptEntry } from '../timeline';

export function EntryActions({ session, entry }: { session: OpenSession; entry: PromptEntry | AnswerEntry | EndEntry }) {
  return (
    <div class="entry-actions">
      {entry.kind !== 'end' && <CopyButton content={() => entry.text} label={entry.kind === 'prompt' ? text.transcript.copyPrompt : text.transcript.copyAnswer} />}
      <BranchButton session={session} entry={entry} />
    </div>
  );
}

function BranchButton({ session, entry }: { session: OpenSession; entry: PromptEntry | AnswerEntry | EndEntry }) {
  // Right after a prompt its run would count as cancelled, so a branch at a prompt starts before it.
  const isPrompt = entry.kind === 'prompt';
  const { isBusy, run } = useToastedAction(async () => {
    const id = await branchSession(session, isPrompt ? entry.offset - 1 : branchPoint(session.timeline.value, entry));
    showToast(text.transcript.branched);
    navigate({ page: 'session', id });
  });
  if (!session.can('branch') || (isPrompt ? entry.offset <= 1 : entry.through === 0)) return null;
  return (
    <button type="button" class="quiet-button" data-part="branch" aria-disabled={isBusy} onClick={run}>
      <Icon name="branch" />
      <span>{isBusy ? text.transcript.branching : isPrompt ? text.transcript.branchBefore : text.transcript.branch}</span>
    </button>
  );
}
