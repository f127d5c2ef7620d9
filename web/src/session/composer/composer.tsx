// Where people write to the session, with what waits above it.
import { useEffect, useState } from 'preact/hooks';
import { text } from '../../text';
import type { OpenSession } from '../open';
import { accessIn, driverOf } from './access';
import type { Access } from './access';
import { Box, characters } from './box';
import { commandsOfSession } from './completion';
import type { Manner } from './drafts';
import type { Skill } from './inventory';
import { Letters } from './letters';
import { ModeSwitch, Options } from './options';
import { Queue } from './queue';
import { Cancel, Send } from './send';
import { mention } from './skills';
import { Suggest } from './suggest';
import { Tools } from './tools';
import { Writing } from './writing';

const words = text.composer;

/** `access`: what the one who is signed in may do here, if that is known; else what the session tells. */
export function Composer({ session, access }: { session: OpenSession; access?: Access | undefined }) {
  const [writing, setWriting] = useState<Writing>();
  useEffect(() => {
    const opened = new Writing(session.id, () => Promise.resolve(session.id));
    setWriting(opened);
    return () => opened.close();
  }, [session]);
  const isReady = session.isReady.value;
  useEffect(() => {
    if (isReady && writing) void writing.check(session);
  }, [isReady, writing]);
  const hasEnded = session.connection.value.is === 'ended';
  useEffect(() => {
    if (hasEnded) writing?.returnAll();
  }, [hasEnded, writing]);
  if (!writing) return null;
  const isViewer = (access ?? accessIn(session) ?? 'owner') === 'viewer';
  const driver = driverOf(session);
  return (
    <div class="composer" data-part="composer">
      <Queue session={session} canChange={!isViewer && driver === undefined} />
      {isViewer ? (
        <p class="read-only small soft" data-part="read-only">{words.viewer}</p>
      ) : driver !== undefined ? (
        <Suggest session={session} writing={writing} driver={driver} />
      ) : (
        <Writer session={session} writing={writing} />
      )}
    </div>
  );
}

function Writer({ session, writing }: { session: OpenSession; writing: Writing }) {
  const { isWaiting, onSend } = useSend(session, writing);
  const most = session.limits.value?.promptChars;
  const files = writing.files.list.value;
  const canSend = writing.text.value.trim() !== '' && !(most !== undefined && characters(writing.text.value) > most);
  const onSkill = (skill: Skill) => {
    const said = mention(session, skill);
    if (!writing.text.value.startsWith(said)) writing.text.value = said + writing.text.value;
    // After the panel has given the focus back to its button.
    setTimeout(() => toEnd(said.length));
  };
  return (
    <>
      <Letters writing={writing} session={session} />
      {isWaiting && <p class="small soft waiting-for-files" role="status">{words.waitingForFiles}</p>}
      <Box
        writing={writing}
        label={words.label}
        placeholder={session.isRunning.value ? words.placeholderRunning : words.placeholder(session.agent.value)}
        most={most}
        mostBytes={session.limits.value?.attachmentBytes}
        readsFiles={session.can('attachments') || session.can('images')}
        commands={() => commandsOfSession(session)}
        onSend={onSend}
        left={
          <>
            <ModeSwitch session={session} writing={writing} />
            <Tools session={session} onSkill={onSkill} />
            <Options session={session} />
          </>
        }
        right={
          <>
            <Cancel session={session} />
            <Send session={session} canSend={canSend} isWaiting={isWaiting} hasFiles={files.length > 0} onSend={onSend} />
          </>
        }
      />
    </>
  );
}

/** Sends once the files are there; a second press takes that back. */
function useSend(session: OpenSession, writing: Writing) {
  const [waiting, setWaiting] = useState<Manner>();
  const isUploading = writing.files.isUploading.value;
  const send = (manner: Manner) => {
    const refusal = whyNot(session, writing, manner);
    if (refusal !== undefined) return void (writing.error.value = refusal);
    const said = session.isRunning.value || manner === 'prompt' ? manner : 'prompt';
    if (!session.can('modes')) writing.mode.value = 'act';
    void writing.send(session, said);
  };
  useEffect(() => {
    if (waiting === undefined || isUploading) return;
    setWaiting(undefined);
    send(waiting);
  }, [waiting, isUploading]);
  const onSend = (manner: Manner) => {
    if (waiting !== undefined) return setWaiting(undefined);
    if (writing.text.value.trim() === '' && writing.files.list.value.length === 0) return document.getElementById('prompt')?.focus();
    if (isUploading) return setWaiting(manner);
    send(manner);
    document.getElementById('prompt')?.focus();
  };
  return { isWaiting: waiting !== undefined, onSend };
}

/** Why what is in the box cannot be sent as it is, in words. */
function whyNot(session: OpenSession, writing: Writing, manner: Manner): string | undefined {
  const most = session.limits.value?.promptChars;
  const typed = writing.text.value;
  if (session.connection.value.is === 'ended') return words.lineEnded;
  if (typed.trim() === '') return words.needsText;
  if (most !== undefined && characters(typed) > most) return words.tooLong(characters(typed), most);
  if (writing.files.hasFailed.value) return words.failedFiles;
  if (manner !== 'prompt' && session.isRunning.value && writing.files.list.value.length > 0) return words.onlyQueued;
  return undefined;
}

function toEnd(place: number): void {
  const box = document.getElementById('prompt');
  if (!(box instanceof HTMLTextAreaElement)) return;
  box.focus();
  box.setSelectionRange(place, place);
}
