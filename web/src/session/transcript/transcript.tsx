// Transcript: the scrollable conversation.
import { useComputed, useSignalEffect } from '@preact/signals';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { currentUser } from '../../auth';
import { Icon } from '../../components/icon';
import { text } from '../../text';
import type { OpenSession } from '../open-session';
import type { Timeline } from '../timeline';
import { ActivityIndicator } from './activity-indicator';
import { Announcer } from './announcer';
import { EntryView } from './entry-view';
import { OlderEntries } from './older-entries';
import { PinnedPlan } from './plan';
import { ScrollPosition } from './scroll-position';
import { useSearchJump } from './search-jump';

export function Transcript({ session }: { session: OpenSession }) {
  const scroll = useMemo(() => new ScrollPosition(() => session.older.value === 'some' && void session.loadOlder()), [session]);
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => (box.current && content.current ? scroll.attach(box.current, content.current) : undefined), [scroll]);
  useSearchJump(session, scroll);
  return (
    <div class="transcript-frame">
      <div class="transcript-box">
        <div ref={box} class="transcript" data-part="transcript" role="log" aria-live="off" aria-label={text.transcript.name} tabIndex={0}>
          <div ref={content} class="entries">
            <OlderEntries session={session} />
            <Entries session={session} scroll={scroll} />
            <ActivityIndicator session={session} />
          </div>
        </div>
        <ToLatestButton session={session} scroll={scroll} />
      </div>
      <PinnedPlan session={session} />
      <Announcer session={session} />
    </div>
  );
}

function Entries({ session, scroll }: { session: OpenSession; scroll: ScrollPosition }) {
  const timeline = session.timeline.value;
  const isRunning = session.isRunning.value;
  const previous = useRef<Timeline>(timeline);
  useLayoutEffect(() => {
    const hasLoadedOlder = timeline.from < previous.current.from;
    if (hasOwnPrompt(timeline, previous.current)) scroll.isAtEnd.value = true;
    previous.current = timeline;
    scroll.restore(hasLoadedOlder);
  });
  const { entries } = timeline;
  const currentRun = session.view.value.currentTask?.id;
  return (
    <>
      {entries.map((entry, index) => (
        <EntryView key={entry.key} session={session} entry={entry} isLive={isRunning && (entry.kind === 'plan' ? entry.taskId === currentRun : index === entries.length - 1)} />
      ))}
    </>
  );
}

/** Whether the user has just sent a prompt and so wants to see the end. */
function hasOwnPrompt(current: Timeline, previous: Timeline): boolean {
  const last = current.entries.at(-1);
  const me = currentUser()?.username;
  return last?.kind === 'prompt' && last.by === me && last.offset > previous.offset;
}

/** Scrolls to the end; shows how many entries were added meanwhile. */
function ToLatestButton({ session, scroll }: { session: OpenSession; scroll: ScrollPosition }) {
  const seenOffset = useRef(0);
  useSignalEffect(() => {
    if (scroll.isAtEnd.value) seenOffset.current = session.timeline.value.offset;
  });
  const newEntries = useComputed(() => {
    if (scroll.isAtEnd.value) return 0;
    return session.timeline.value.entries.filter(({ offset }) => offset > seenOffset.current).length;
  });
  if (scroll.isAtEnd.value || session.timeline.value.entries.length === 0) return null;
  const newCount = newEntries.value;
  return (
    <div class="latest-row">
      <button type="button" class="to-latest" data-part="latest" onClick={() => scroll.toEnd()} aria-label={newCount > 0 ? text.transcript.toNew(newCount) : text.transcript.toLatest}>
        <Icon name="down" />
        <span>{text.transcript.toLatest}</span>
        {newCount > 0 && <span class="badge accent">{newCount}</span>}
      </button>
    </div>
  );
}
