// Question card: a question in the transcript, open or resolved.
import { useEffect, useRef } from 'preact/hooks';
import type { Protocol } from '@switchboard/client';
import { Icon } from '../../components/icon';
import type { IconName } from '../../components/icon';
import { text } from '../../text';
import { accessTo } from '../access';
import { isTouch } from '../composer/prompt-box';
import type { OpenSession } from '../open-session';
import type { QuestionEntry } from '../timeline';
import { answerDraftFor } from './answer-draft';
import type { AnswerDraft } from './answer-draft';
import { ChoiceFields, ConfirmFields, PermissionFields, PromptFields } from './answer-fields';
import { pressKey } from './answer-keys';
import { Countdown } from './countdown';
import { TextWithCode } from './inline-code';
import { QuestionOutcome } from './question-outcome';
import { ToolArguments } from './tool-arguments';

const strings = text.questions;
const ICONS: Record<Protocol.Question['level'], IconName> = { INFO: 'bell', WARN: 'warn', CRITICAL: 'warn' };

export function QuestionCard({ session, entry }: { session: OpenSession; entry: Pick<QuestionEntry, 'question' | 'resolved' | 'resolvedAt'> }) {
  const { question, resolved } = entry;
  const card = useRef<HTMLFormElement>(null);
  // The session's state may know that the question is resolved before the timeline does.
  const isOpen = resolved === undefined && (!session.isReady.value || session.view.value.questions.some(({ questionId }) => questionId === question.questionId));
  const focus = useFocusAfterAnswer(isOpen, card, session);
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
        // Ignore key repeat.
        if (event.repeat && event.key === 'Enter') event.preventDefault();
        if (isOpen && !event.altKey) pressKey(event, event.currentTarget);
      }}
    >
      <header>
        <span class="question-level" title={strings.levelMeans[question.level]}><Icon name={ICONS[question.level]} />{strings.levels[question.level] ?? question.level}</span>
        {isOpen && question.expiresAt !== undefined && <Countdown until={question.expiresAt} />}
      </header>
      <h3 id={titleId}><TextWithCode line={question.title} /></h3>
      {isOpen ? <QuestionDetails question={question} /> : <ResolvedQuestion question={question} resolved={resolved} at={entry.resolvedAt} />}
      {isOpen && <AnswerForm session={session} question={question} />}
    </form>
  );
}

function QuestionDetails({ question }: { question: Protocol.Question }) {
  return (
    <>
      {question.message !== '' && question.message !== question.title && <p class="question-message"><TextWithCode line={question.message} /></p>}
      {question.tool && <ToolArguments tool={question.tool} />}
    </>
  );
}

/** The outcome first; the question itself is folded. */
function ResolvedQuestion({ question, resolved, at }: { question: Protocol.Question; resolved: Protocol.Resolved | undefined; at: string | undefined }) {
  return (
    <>
      {resolved ? <QuestionOutcome question={question} resolved={resolved} at={at} /> : <p class="soft small">{strings.gone}</p>}
      <details class="question-past">
        <summary class="small soft">{strings.past}</summary>
        <QuestionDetails question={question} />
      </details>
    </>
  );
}

function AnswerForm({ session, question }: { session: OpenSession; question: Protocol.Question }) {
  const draft = answerDraftFor(question);
  if (accessTo(session) === 'viewer') return <p class="soft small">{strings.mayNot}</p>;
  const Fields = { permission: PermissionFields, confirm: ConfirmFields, prompt: PromptFields, pick: ChoiceFields }[question.kind];
  return (
    <>
      <Fields draft={draft} send={(answer, verdict) => void draft.send(session, answer, verdict)} />
      <p class="small soft status" role="status">{draftStatus(draft)}</p>
      <p class="error small" role="alert">{draft.error.value}</p>
      <KeyHint question={question} />
    </>
  );
}

function draftStatus(draft: AnswerDraft): string {
  if (draft.isBusy.value) return strings.sending;
  return draft.answeredByOther.value !== '' ? draft.answeredByOther.value : draft.armed.value !== '' ? strings.armed : '';
}

function KeyHint({ question }: { question: Protocol.Question }) {
  const count = question.kind === 'confirm' ? 2 : question.kind === 'prompt' ? 0 : Math.min(9, question.options.length || 2);
  if (count === 0 || isTouch()) return null;
  return <p class="small soft question-keys">{strings.keysHint(count)} {question.level === 'CRITICAL' ? strings.keysCritical : ''}</p>;
}

/** After an answer by keyboard the focus moves on to the next question or the prompt box. */
function useFocusAfterAnswer(isOpen: boolean, card: { current: HTMLFormElement | null }, session: OpenSession) {
  const wasOpen = useRef(isOpen);
  const hadFocus = useRef(false);
  useEffect(() => {
    const wasResolved = wasOpen.current && !isOpen;
    wasOpen.current = isOpen;
    const focused = document.activeElement;
    if (!wasResolved || !hadFocus.current || (focused !== document.body && !card.current?.contains(focused))) return;
    const nextQuestion = session.view.value.questions[0];
    const target = nextQuestion ? document.querySelector<HTMLElement>(`[data-question="${nextQuestion.questionId}"]`) : isTouch() ? card.current : document.getElementById('prompt');
    target?.focus({ preventScroll: true });
  }, [isOpen]);
  return {
    onFocusIn: () => void (hadFocus.current = true),
    // Without a new target the focused element was removed: the user did not leave the card.
    onFocusOut: ({ relatedTarget }: FocusEvent) => {
      if (relatedTarget instanceof Node && !card.current?.contains(relatedTarget)) hadFocus.current = false;
    },
  };
}
