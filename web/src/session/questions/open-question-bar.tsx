// The question that waits longest, directly above the box: an open question is never out of sight.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Protocol } from '@switchboard/client';
import { Icon } from '../../parts/icon';
import { text } from '../../text';
import type { OpenSession } from '../open';
import { QuestionCard } from './card';
import { Coded } from './coded';
import { focusCard, pressKey } from './keys';

const words = text.questions;
/** So much of a card is enough to know what it asks. */
const SEEN = 0.7;
const LOOK_MS = 200;
/** So often in vain, and the bar is shown. */
const LOOKS = 5;

export function OpenQuestions({ session }: { session: OpenSession }) {
  const { questions } = session.view.value;
  const oldest = questions[0];
  const [shown, setShown] = useState<string>();
  const isInTranscript = useIsInTranscript(session, oldest);
  const bar = useRef<HTMLDivElement>(null);
  const show = () => {
    if (!oldest || focusTranscript(oldest.questionId)) return;
    setShown(oldest.questionId);
    setTimeout(() => focusCard(oldest.questionId));
  };
  useKeys(oldest, show);
  const isInSight = useIsInSight(oldest?.questionId, isInTranscript);
  const isHere = oldest !== undefined && (!isInTranscript || (shown === oldest.questionId && !isElsewhere(bar.current, oldest.questionId)));
  return (
    <>
      <p class="heard" role="alert">{oldest ? words.announce(oldest.title) : ''}</p>
      {oldest && (isHere || !isInSight) && (
        <div ref={bar} class="open-questions" data-part="open-questions" data-level={oldest.level}>
          {isHere ? <QuestionCard key={oldest.questionId} session={session} entry={{ question: oldest }} /> : <Short question={oldest} count={questions.length} show={show} />}
        </div>
      )}
    </>
  );
}

function Short({ question, count, show }: { question: Protocol.Question; count: number; show: () => void }) {
  return (
    <div class={`open-question ${question.level.toLowerCase()}`}>
      <span class="question-level" title={words.levelMeans[question.level]}><Icon name={question.level === 'INFO' ? 'bell' : 'warn'} />{words.levels[question.level]}</span>
      <span class="open-question-title">
        <Coded line={question.title} />
        <span class="soft small open-question-count">{count > 1 ? words.open(count) : ''}</span>
      </span>
      <button type="button" class="button small" data-part="show-question" aria-keyshortcuts="Alt+Q" onClick={show}>{words.show}<kbd>{words.focusKey}</kbd></button>
    </div>
  );
}

/** Alt+Q goes to the oldest question; Alt and a digit answer it while no text field has the focus. */
function useKeys(oldest: Protocol.Question | undefined, show: () => void): void {
  const latest = useRef(show);
  latest.current = show;
  const id = oldest?.questionId;
  useEffect(() => {
    if (id === undefined) return;
    const onKeyDown = (event: KeyboardEvent) => {
      if (!event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.code === 'KeyQ') {
        event.preventDefault();
        return latest.current();
      }
      const card = document.querySelector<HTMLElement>(`[data-question="${id}"]`);
      if (card) pressKey(event, card);
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, [id]);
}

/** Whether most of the card in the conversation can be seen. The bar that comes when it cannot hides no more of it. */
function useIsInSight(id: string | undefined, isInTranscript: boolean): boolean {
  const [isInSight, setInSight] = useState(true);
  useEffect(() => {
    // Until it is known, so that the bar does not come and go.
    setInSight(true);
    if (id === undefined || !isInTranscript) return;
    const observer = new IntersectionObserver((seen) => setInSight((seen.at(-1)?.intersectionRatio ?? 0) >= SEEN), { threshold: SEEN });
    // The conversation may be drawn later than this bar.
    let looks = 0;
    const look = () => {
      const card = document.querySelector(`[data-entry=question] [data-question="${id}"]`);
      if (!card) return void ((looks += 1) > LOOKS && setInSight(false));
      clearInterval(timer);
      observer.observe(card);
    };
    const timer = setInterval(look, LOOK_MS);
    look();
    return () => {
      clearInterval(timer);
      observer.disconnect();
    };
  }, [id, isInTranscript]);
  return isInSight;
}

/** Whether the conversation as it is loaded has the question. */
function useIsInTranscript(session: OpenSession, question: Protocol.Question | undefined): boolean {
  if (!question || !session.isReady.value) return true;
  return session.timeline.value.entries.some((entry) => entry.kind === 'question' && entry.question.questionId === question.questionId);
}

function isElsewhere(bar: HTMLElement | null, questionId: string): boolean {
  return [...document.querySelectorAll(`[data-question="${questionId}"]`)].some((card) => !bar?.contains(card));
}

function focusTranscript(questionId: string): boolean {
  return document.querySelector(`[data-question="${questionId}"]`) !== null && focusCard(questionId);
}
