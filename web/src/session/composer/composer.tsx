// Composer: the prompt box of a session, with the queue above it.
import { useEffect, useState } from 'preact/hooks';
import { text } from '../../text';
import { accessTo, otherController } from '../access';
import type { Access } from '../access';
import type { OpenSession } from '../open-session';
import { commandsOfSession } from './agent-commands';
import { ComposerState } from './composer-state';
import type { PromptKind } from './drafts';
import { ModeSwitch, OptionsMenu } from './options-menu';
import { countCharacters, PromptBox } from './prompt-box';
import type { Skill } from './query-results';
import { Queue } from './queue';
import { CancelButton, SendButton } from './send-buttons';
import { mentionOf } from './skills';
import { SuggestionForm } from './suggestion-form';
import { ToolsButton } from './tools-dialog';
import { UnsentPrompts } from './unsent-prompts';

const strings = text.composer;

/** `access`: overrides what the session reports. */
export function Composer({ session, access }: { session: OpenSession; access?: Access | undefined }) {
  const [composer, setComposer] = useState<ComposerState>();
  useEffect(() => {
    const opened = new ComposerState(session.id, () => Promise.resolve(session.id));
    setComposer(opened);
    return () => opened.close();
  }, [session]);
  const isReady = session.isReady.value;
  useEffect(() => {
    if (isReady && composer) void composer.checkArrivals(session);
  }, [isReady, composer]);
  const hasEnded = session.connection.value.is === 'ended';
  useEffect(() => {
    if (hasEnded) composer?.returnPending();
  }, [hasEnded, composer]);
  if (!composer) return null;
  const isViewer = (access ?? accessTo(session) ?? 'owner') === 'viewer';
  const controller = otherController(session);
  return (
    <div class="composer" data-part="composer">
      <Queue session={session} canChange={!isViewer && controller === undefined} />
      {isViewer ? (
        <p class="read-only small soft" data-part="read-only">{strings.viewer}</p>
      ) : controller !== undefined ? (
        <SuggestionForm session={session} composer={composer} controller={controller} />
      ) : (
        <PromptForm session={session} composer={composer} />
      )}
    </div>
  );
}

function PromptForm({ session, composer }: { session: OpenSession; composer: ComposerState }) {
  const { isWaiting, onSend } = useSend(session, composer);
  const maxChars = session.limits.value?.promptChars;
  const files = composer.files.list.value;
  const canSend = composer.text.value.trim() !== '' && !(maxChars !== undefined && countCharacters(composer.text.value) > maxChars);
  const isAsked = session.view.value.questions.length > 0;
  useEffect(() => {
    if (!isAsked && composer.error.value === strings.answerFirst) composer.error.value = '';
  }, [isAsked]);
  const insertSkill = (skill: Skill) => {
    const mentionText = mentionOf(session, skill);
    if (!composer.text.value.startsWith(mentionText)) composer.text.value = mentionText + composer.text.value;
    // After the dialog has restored the focus to its button.
    setTimeout(() => focusPromptAt(mentionText.length));
  };
  return (
    <>
      <UnsentPrompts composer={composer} session={session} />
      {isWaiting && <p class="small soft waiting-for-files" role="status">{strings.waitingForFiles}</p>}
      <PromptBox
        composer={composer}
        label={strings.label}
        placeholder={isAsked ? strings.placeholderAsked : session.isRunning.value ? strings.placeholderRunning : strings.placeholder(session.agent.value)}
        maxChars={maxChars}
        maxFileBytes={session.limits.value?.attachmentBytes}
        readsFiles={session.can('attachments') || session.can('images')}
        commands={() => commandsOfSession(session)}
        onSend={onSend}
        onEnter={() => leadToQuestion(session, composer)}
        left={
          <>
            <ModeSwitch session={session} composer={composer} />
            <ToolsButton session={session} onSkill={insertSkill} />
            <OptionsMenu session={session} />
          </>
        }
        right={
          <>
            <CancelButton session={session} />
            <SendButton session={session} canSend={canSend} isWaiting={isWaiting} hasFiles={files.length > 0} onSend={onSend} />
          </>
        }
      />
    </>
  );
}

/** Sends once the uploads are done; a second press cancels the wait. */
function useSend(session: OpenSession, composer: ComposerState) {
  const [waiting, setWaiting] = useState<PromptKind>();
  const isUploading = composer.files.isUploading.value;
  const send = (kind: PromptKind) => {
    const refusal = refusalOf(session, composer, kind);
    if (refusal !== undefined) return void (composer.error.value = refusal);
    const sentKind = session.isRunning.value || kind === 'prompt' ? kind : 'prompt';
    if (!session.can('modes')) composer.mode.value = 'act';
    void composer.send(session, sentKind);
  };
  useEffect(() => {
    if (waiting === undefined || isUploading) return;
    setWaiting(undefined);
    send(waiting);
  }, [waiting, isUploading]);
  const onSend = (kind: PromptKind) => {
    if (waiting !== undefined) return setWaiting(undefined);
    if (composer.text.value.trim() === '' && composer.files.list.value.length === 0) return document.getElementById('prompt')?.focus();
    if (isUploading) return setWaiting(kind);
    send(kind);
    document.getElementById('prompt')?.focus();
  };
  return { isWaiting: waiting !== undefined, onSend };
}

/** While a question is open, Enter goes to the question: queueing a prompt takes the button. */
function leadToQuestion(session: OpenSession, composer: ComposerState): boolean {
  if (session.view.value.questions.length === 0) return false;
  composer.error.value = composer.text.value.trim() === '' ? '' : strings.answerFirst;
  session.questionWanted.value += 1;
  return true;
}

/** Why the content cannot be sent, as text. */
function refusalOf(session: OpenSession, composer: ComposerState, kind: PromptKind): string | undefined {
  const maxChars = session.limits.value?.promptChars;
  const typed = composer.text.value;
  if (session.connection.value.is === 'ended') return strings.lineEnded;
  if (typed.trim() === '') return strings.needsText;
  if (maxChars !== undefined && countCharacters(typed) > maxChars) return strings.tooLong(countCharacters(typed), maxChars);
  if (composer.files.hasFailed.value) return strings.failedFiles;
  if (kind !== 'prompt' && session.isRunning.value && composer.files.list.value.length > 0) return strings.onlyQueued;
  return undefined;
}

function focusPromptAt(index: number): void {
  const box = document.getElementById('prompt');
  if (!(box instanceof HTMLTextAreaElement)) return;
  box.focus();
  box.setSelectionRange(index, index);
}
