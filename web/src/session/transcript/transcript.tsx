// The conversation, as it is read.
import { useComputed, useSignalEffect } from '@preact/signals';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { standing } from '../../account';
import { Icon } from '../../parts/icon';
import { text } from '../../text';
import type { OpenSession } from '../open';
import type { Timeline } from '../timeline';
import { EntryView } from './entry';
import { News } from './news';
import { Older } from './older';
import { Plan } from './plan';
import { Scroll } from './scroll';
import { Working } from './working';

export function Transcript({ session }: { session: OpenSession }) {
  const scroll = useMemo(() => new Scroll(() => session.older.value === 'some' && void session.loadOlder()), [session]);
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => (box.current && content.current ? scroll.attach(box.current, content.current) : undefined), [scroll]);
  return (
    <div class="transcript-frame">
      <div class="transcript-box">
        <div ref={box} class="transcript" data-part="transcript" role="log" aria-live="off" aria-label={text.transcript.name} tabIndex={0}>
          <div ref={content} class="entries">
            <Older session={session} />
            <Entries session={session} scroll={scroll} />
            <Working session={session} />
          </div>
        </div>
        <ToLatest session={session} scroll={scroll} />
      </div>
      <Plan session={session} />
      <News session={session} />
    </div>
  );
}

function Entries({ session, scroll }: { session: OpenSession; scroll: Scroll }) {
  const timeline = session.timeline.value;
  const isRunning = session.isRunning.value;
  const before = useRef<Timeline>(timeline);
  useLayoutEffect(() => {
    const hasOlder = timeline.from < before.current.from;
    if (hasMine(timeline, before.current)) scroll.isAtEnd.value = true;
    before.current = timeline;
    scroll.hold(hasOlder);
  });
  const { entries } = timeline;
  return (
    <>
      {entries.map((entry, place) => (
        <EntryView key={entry.key} session={session} entry={entry} isLive={isRunning && place === entries.length - 1} />
      ))}
    </>
  );
}

/** Has the reader just said something? Then they want to see what becomes of it. */
function hasMine(now: Timeline, before: Timeline): boolean {
  const last = now.entries.at(-1);
  const me = standing.value.is === 'in' ? standing.value.user.username : undefined;
  return last?.kind === 'prompt' && last.by === me && last.offset > before.offset;
}

/** For whoever reads further up: the way back, and how much came meanwhile. */
function ToLatest({ session, scroll }: { session: OpenSession; scroll: Scroll }) {
  const seen = useRef(0);
  useSignalEffect(() => {
    if (scroll.isAtEnd.value) seen.current = session.timeline.value.offset;
  });
  const news = useComputed(() => {
    if (scroll.isAtEnd.value) return 0;
    return session.timeline.value.entries.filter(({ offset }) => offset > seen.current).length;
  });
  if (scroll.isAtEnd.value || session.timeline.value.entries.length === 0) return null;
  const many = news.value;
  return (
    <button type="button" class="to-latest" data-part="latest" onClick={() => scroll.toEnd()} aria-label={many > 0 ? text.transcript.toNew(many) : text.transcript.toLatest}>
      <Icon name="down" />
      <span>{text.transcript.toLatest}</span>
      {many > 0 && <span class="badge accent">{many}</span>}
    </button>
  );
}
