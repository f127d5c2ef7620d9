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
import { Countdown } from './countdown';
import { Choose, Confirm, Permission, Prompt } from './fields';
import { pressKey } from './keys';
import { replyTo } from './reply';
import type { Reply } from './reply';
import { Resolved } from './resolved';

const words = text.questions;
const ICONS: Record<Protocol.Question['level'], IconName> = { INFO: 'bell', WARN: 'warn', CRITICAL: 'warn' };

/** What a card has to know of its entry. */
type Asked = Pick<QuestionEntry, 'question' | 'resolved'>;

export function QuestionCard({ session, entry }: { session: OpenSession; entry: Asked }) {
  const { question, resolved } = entry;
  const card = useRef<HTMLFormElement>(null);
  // Once the session knows it is over, nobody can answer any more, whatever the journal has shown so far.
  const isOpen = resolved === undefined && (!session.isReady.value || session.view.value.questions.some(({ questionId }) => questionId === question.questionId));
  useFocusAfterwards(isOpen, card, session);
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
      <h3 id={titleId}>{question.title}</h3>
      {question.message !== '' && question.message !== question.title && <p class="question-message">{question.message}</p>}
      {question.tool && <Arguments tool={question.tool} />}
      {isOpen ? <Answering session={session} question={question} /> : resolved ? <Resolved question={question} resolved={resolved} /> : <p class="soft small">{words.gone}</p>}
    </form>
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
function useFocusAfterwards(isOpen: boolean, card: { current: HTMLFormElement | null }, session: OpenSession): void {
  const wasOpen = useRef(isOpen);
  const hadFocus = useRef(false);
  if (isOpen) hadFocus.current = card.current?.contains(document.activeElement) ?? false;
  useEffect(() => {
    const isOver = wasOpen.current && !isOpen;
    wasOpen.current = isOpen;
    if (!isOver || !hadFocus.current || (document.activeElement !== document.body && !card.current?.contains(document.activeElement))) return;
    const next = session.view.value.questions[0];
    const target = next ? document.querySelector<HTMLElement>(`[data-question="${next.questionId}"]`) : isTouch() ? card.current : document.getElementById('prompt');
    target?.focus();
  }, [isOpen]);
}
