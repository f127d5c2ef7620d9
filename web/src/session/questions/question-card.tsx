// A question of the agent, where it was asked.
import { useEffect, useRef } from 'preact/hooks';
import type { Protocol } from '@switchboard/client';
import { Icon } from '../../parts/icon';
import type { IconName } from '../../parts/icon';
import { text } from '../../text';
import { accessIn } from '../composer/access';
import { isTouch } from '../composer/box';
import type { OpenSession } from '../open';
import type { QuestionEntry } from '../timeline';
import { Arguments } from './arguments';
import { Coded } from './coded';
import { Countdown } from './countdown';
import { Choose, Confirm, Permission, Prompt } from './fields';
import { pressKey } from './keys';
import { replyTo } from './reply';
import type { Reply } from './reply';
import { Resolved } from './resolved';

const words = text.questions;
const ICONS: Record<Protocol.Question['level'], IconName> = { INFO: 'bell', WARN: 'warn', CRITICAL: 'warn' };

/** Of its entry it has to know what was asked, and how it ended. */
export function QuestionCard({ session, entry }: { session: OpenSession; entry: Pick<QuestionEntry, 'question' | 'resolved' | 'resolvedAt'> }) {
  const { question, resolved } = entry;
  const card = useRef<HTMLFormElement>(null);
  // Once the session knows it is over, nobody can answer any more, whatever the journal has shown so far.
  const isOpen = resolved === undefined && (!session.isReady.value || session.view.value.questions.some(({ questionId }) => questionId === question.questionId));
  const focus = useFocusAfterwards(isOpen, card, session);
  const titleId = `title-${question.questionId}`;
  return (
    <form
      ref={card}
      class={`question ${question.level.toLowerCase()} ${isOpen ? '' : 'over'}`}
      data-part="question"
      data-question={question.questionId}
      data-state={isOpen ? 'open' : 'resolved'}
      data-kind={question.kind}
      aria-labelledby={titleId}
      tabIndex={-1}
      {...focus}
      onSubmit={(event) => event.preventDefault()}
      onKeyDown={(event) => {
        // A key that is held down is pressed once.
        if (event.repeat && event.key === 'Enter') event.preventDefault();
        if (isOpen && !event.altKey) pressKey(event, event.currentTarget);
      }}
    >
      <header>
        <span class="question-level" title={words.levelMeans[question.level]}><Icon name={ICONS[question.level]} />{words.levels[question.level] ?? question.level}</span>
        {isOpen && question.expiresAt !== undefined && <Countdown until={question.expiresAt} />}
      </header>
      <h3 id={titleId}><Coded line={question.title} /></h3>
      {isOpen ? <Asked question={question} /> : <Over question={question} resolved={resolved} at={entry.resolvedAt} />}
      {isOpen && <Answering session={session} question={question} />}
    </form>
  );
}

function Asked({ question }: { question: Protocol.Question }) {
  return (
    <>
      {question.message !== '' && question.message !== question.title && <p class="question-message"><Coded line={question.message} /></p>}
      {question.tool && <Arguments tool={question.tool} />}
    </>
  );
}

/** How it ended first; what it was about for those who want to know. */
function Over({ question, resolved, at }: { question: Protocol.Question; resolved: Protocol.Resolved | undefined; at: string | undefined }) {
  return (
    <>
      {resolved ? <Resolved question={question} resolved={resolved} at={at} /> : <p class="soft small">{words.gone}</p>}
      <details class="question-past">
        <summary class="small soft">{words.past}</summary>
        <Asked question={question} />
      </details>
    </>
  );
}

function Answering({ session, question }: { session: OpenSession; question: Protocol.Question }) {
  const reply = replyTo(question);
  if (accessIn(session) === 'viewer') return <p class="soft small">{words.mayNot}</p>;
  const Fields = { permission: Permission, confirm: Confirm, prompt: Prompt, pick: Choose }[question.kind];
  return (
    <>
      <Fields reply={reply} send={(said, is) => void reply.send(session, said, is)} />
      <p class="small soft status" role="status">{standing(reply)}</p>
      <p class="error small" role="alert">{reply.error.value}</p>
      <Keys question={question} />
    </>
  );
}

function standing(reply: Reply): string {
  if (reply.isBusy.value) return words.sending;
  return reply.beaten.value !== '' ? reply.beaten.value : reply.armed.value !== '' ? words.armed : '';
}

function Keys({ question }: { question: Protocol.Question }) {
  const count = question.kind === 'confirm' ? 2 : question.kind === 'prompt' ? 0 : Math.min(9, question.options.length || 2);
  if (count === 0 || isTouch()) return null;
  return <p class="small soft question-keys">{words.keysHint(count)} {question.level === 'CRITICAL' ? words.keysCritical : ''}</p>;
}

/** Whoever answered with the keyboard goes on in the box, and does not fall out of the page. */
function useFocusAfterwards(isOpen: boolean, card: { current: HTMLFormElement | null }, session: OpenSession) {
  const wasOpen = useRef(isOpen);
  const hadFocus = useRef(false);
  useEffect(() => {
    const isOver = wasOpen.current && !isOpen;
    wasOpen.current = isOpen;
    const now = document.activeElement;
    if (!isOver || !hadFocus.current || (now !== document.body && !card.current?.contains(now))) return;
    const next = session.view.value.questions[0];
    const target = next ? document.querySelector<HTMLElement>(`[data-question="${next.questionId}"]`) : isTouch() ? card.current : document.getElementById('prompt');
    target?.focus({ preventScroll: true });
  }, [isOpen]);
  return {
    onFocusIn: () => void (hadFocus.current = true),
    // Without a new place, what had the focus is gone: that is no wish to be elsewhere.
    onFocusOut: ({ relatedTarget }: FocusEvent) => {
      if (relatedTarget instanceof Node && !card.current?.contains(relatedTarget)) hadFocus.current = false;
    },
  };
}
