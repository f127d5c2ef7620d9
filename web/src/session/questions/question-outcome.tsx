// Question outcome: who resolved a question, and how.
import type { Protocol } from '@switchboard/client';
import { currentUser } from '../../auth';
import { Icon } from '../../components/icon';
import { RelativeTime } from '../../components/relative-time';
import { text } from '../../text';

const strings = text.questions;

export function QuestionOutcome({ question, resolved, at }: { question: Protocol.Question; resolved: Protocol.Resolved; at: string | undefined }) {
  const isYes = resolved.outcome === 'allowed' || resolved.outcome === 'answered';
  const answerText = describeAnswer(question, resolved.answer);
  return (
    <p class={`question-outcome ${resolved.outcome}`} data-part="outcome" data-outcome={resolved.outcome}>
      <Icon name={isYes ? 'check' : 'close'} />
      <span>
        {describeOutcome(resolved)}
        {answerText !== '' && <>: <span class="question-given">{answerText}</span></>}
        {resolved.answer?.reason !== undefined && <span class="soft"> {strings.withReason(resolved.answer.reason)}</span>}
        {resolved.answer?.remember === true && <span class="soft"> ({strings.remembered})</span>}
        {at !== undefined && <span class="soft small"> <RelativeTime at={at} /></span>}
      </span>
    </p>
  );
}

function describeOutcome({ outcome, by, byUserId }: Protocol.Resolved): string {
  const verb = strings.outcomes[outcome] ?? outcome;
  if (outcome === 'expired' || outcome === 'cancelled') return verb;
  if (by === 'autoApprove' && byUserId === undefined) return strings.byItself;
  return strings.outcomeBy(verb, byUserId !== undefined && currentUser()?.id === byUserId ? strings.you : by);
}

function describeAnswer({ secret, options }: Protocol.Question, answer: Protocol.Given | undefined): string {
  if (secret) return answer?.ok === false ? '' : answer?.value === undefined && answer?.ids === undefined ? '' : strings.secretGiven;
  const label = (id: string) => options.find((option) => option.id === id)?.label ?? id;
  if (answer?.value !== undefined) return answer.value;
  if (answer?.ids !== undefined) return answer.ids.map(label).join(', ');
  const option = options.find(({ id }) => id === answer?.optionId);
  // The outcome already says that it was allowed or denied.
  return option === undefined || option.kind?.endsWith('once') ? '' : option.label;
}
