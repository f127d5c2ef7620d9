// Open question bar: shows the oldest open question above the prompt box while its card is out of view.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Protocol } from '@switchboard/client';
import { Icon } from '../../components/icon';
import { text } from '../../text';
import type { OpenSession } from '../open-session';
import { focusCard, pressKey } from './answer-keys';
import { TextWithCode } from './inline-code';
import { QuestionCard } from './question-card';
import { useQuestionFocus } from './question-focus';

const strings = text.questions;
/** A card counts as visible from this ratio on. */
const VISIBLE_RATIO = 0.7;
const SEARCH_INTERVAL_MS = 200;
/** After this many searches the bar is shown. */
const MAX_SEARCHES = 5;

export function OpenQuestionBar({ session }: { session: OpenSession }) {
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
  useQuestionKeys(oldest, show);
  useQuestionFocus(session, oldest, show);
  const isVisible = useIsVisible(oldest?.questionId, isInTranscript);
  const isCardInBar = oldest !== undefined && (!isInTranscript || (shown === oldest.questionId && !isOutsideBar(bar.current, oldest.questionId)));
  return (
    <>
      <p class="visually-hidden" role="alert">{oldest ? strings.announce(oldest.title) : ''}</p>
      {oldest && (isCardInBar || !isVisible) && (
        <div ref={bar} class="open-questions" data-part="open-questions" data-level={oldest.level}>
          {isCardInBar ? <QuestionCard key={oldest.questionId} session={session} entry={{ question: oldest }} /> : <QuestionSummary question={oldest} count={questions.length} show={show} />}
        </div>
      )}
    </>
  );
}

function QuestionSummary({ question, count, show }: { question: Protocol.Question; count: number; show: () => void }) {
  return (
    <div class={`open-question ${question.level.toLowerCase()}`}>
      <span class="question-level" title={strings.levelMeans[question.level]}><Icon name={question.level === 'INFO' ? 'bell' : 'warn'} />{strings.levels[question.level]}</span>
      <span class="open-question-title">
        <TextWithCode line={question.title} />
        <span class="soft small open-question-count">{count > 1 ? strings.openCount(count) : ''}</span>
      </span>
      <button type="button" class="button small" data-part="show-question" aria-keyshortcuts="Alt+Q" onClick={show}>{strings.show}<kbd>{strings.focusKey}</kbd></button>
    </div>
  );
}

/** Alt+Q focuses the oldest question; Alt and a digit answer it unless a text field has the focus. */
function useQuestionKeys(oldest: Protocol.Question | undefined, show: () => void): void {
  const latestShow = useRef(show);
  latestShow.current = show;
  const id = oldest?.questionId;
  useEffect(() => {
    if (id === undefined) return;
    const onKeyDown = (event: KeyboardEvent) => {
      if (!event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.code === 'KeyQ') {
        event.preventDefault();
        return latestShow.current();
      }
      const card = document.querySelector<HTMLElement>(`[data-question="${id}"]`);
      if (card) pressKey(event, card);
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, [id]);
}

/** Whether most of the card in the transcript is visible. The bar, which appears if not, does not cover it further. */
function useIsVisible(id: string | undefined, isInTranscript: boolean): boolean {
  const [isVisible, setVisible] = useState(true);
  useEffect(() => {
    // Until the observer reports, so that the bar does not flicker.
    setVisible(true);
    if (id === undefined || !isInTranscript) return;
    const observer = new IntersectionObserver((entries) => setVisible((entries.at(-1)?.intersectionRatio ?? 0) >= VISIBLE_RATIO), { threshold: VISIBLE_RATIO });
    // The transcript may render after this bar.
    let searches = 0;
    const search = () => {
      const card = document.querySelector(`[data-entry=question] [data-question="${id}"]`);
      if (!card) return void ((searches += 1) > MAX_SEARCHES && setVisible(false));
      clearInterval(timer);
      observer.observe(card);
    };
    const timer = setInterval(search, SEARCH_INTERVAL_MS);
    search();
    return () => {
      clearInterval(timer);
      observer.disconnect();
    };
  }, [id, isInTranscript]);
  return isVisible;
}

/** Whether the loaded part of the transcript has the question. */
function useIsInTranscript(session: OpenSession, question: Protocol.Question | undefined): boolean {
  if (!question || !session.isReady.value) return true;
  return session.timeline.value.entries.some((entry) => entry.kind === 'question' && entry.question.questionId === question.questionId);
}

function isOutsideBar(bar: HTMLElement | null, questionId: string): boolean {
  return [...document.querySelectorAll(`[data-question="${questionId}"]`)].some((card) => !bar?.contains(card));
}

function focusTranscript(questionId: string): boolean {
  return document.querySelector(`[data-question="${questionId}"]`) !== null && focusCard(questionId);
}
