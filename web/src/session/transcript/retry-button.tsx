// Retry button: sends the prompt of a failed run again, as it was.
import { useToastedAction } from '../../components/use-action';
import { text } from '../../text';
import { accessTo, otherController } from '../access';
import type { OpenSession } from '../open-session';
import type { EndEntry, PromptEntry } from '../timeline';

/** Only for the last run: after another prompt, the conversation has moved on. */
export function RetryButton({ session, entry }: { session: OpenSession; entry: EndEntry }) {
  const prompt = lastPrompt(session);
  const { isBusy, run } = useToastedAction(async () => {
    if (prompt) await session.send('SUBMIT_PROMPT', payloadOf(prompt));
  });
  const isLast = prompt !== undefined && prompt.taskId === entry.taskId && !session.isRunning.value;
  if (!isLast || accessTo(session) === 'viewer' || otherController(session) !== undefined) return null;
  return (
    <button type="button" class="button quiet small" data-part="retry" aria-disabled={isBusy} onClick={run}>
      {text.transcript.retry}
    </button>
  );
}

function lastPrompt(session: OpenSession): PromptEntry | undefined {
  const { entries } = session.timeline.value;
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const entry = entries[index];
    if (entry?.kind === 'prompt') return entry;
  }
  return undefined;
}

function payloadOf({ text, mode = 'act', files }: PromptEntry) {
  const attachments = files.flatMap(({ attachmentId }) => (attachmentId === undefined ? [] : [{ attachmentId }]));
  return { text, mode, ...(attachments.length > 0 ? { attachments } : {}) };
}
