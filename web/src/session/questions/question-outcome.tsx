// How a question ended.
import type { Protocol } from '@switchboard/client';
import { standing } from '../../account';
import { Icon } from '../../parts/icon';
import { When } from '../../parts/when';
import { text } from '../../text';

const words = text.questions;

export function Resolved({ question, resolved, at }: { question: Protocol.Question; resolved: Protocol.Resolved; at: string | undefined }) {
  const isYes = resolved.outcome === 'allowed' || resolved.outcome === 'answered';
  const said = given(question, resolved.answer);
  return (
    <p class={`question-outcome ${resolved.outcome}`} data-part="outcome" data-outcome={resolved.outcome}>
      <Icon name={isYes ? 'check' : 'close'} />
      <span>
        {outcome(resolved)}
        {said !== '' && <>: <span class="question-given">{said}</span></>}
        {resolved.answer?.reason !== undefined && <span class="soft"> {words.withReason(resolved.answer.reason)}</span>}
        {resolved.answer?.remember === true && <span class="soft"> ({words.remembered})</span>}
        {at !== undefined && <span class="soft small"> <When at={at} /></span>}
      </span>
    </p>
  );
}

/** In one line, also for a list. */
function outcome({ outcome, by, byUserId }: Protocol.Resolved): string {
  const word = words.outcomes[outcome] ?? outcome;
  if (outcome === 'expired' || outcome === 'cancelled') return word;
  if (by === 'autoApprove' && byUserId === undefined) return words.byItself;
  const now = standing.value;
  return words.outcomeBy(word, now.is === 'in' && now.user.id === byUserId ? words.you : by);
}

function given({ secret, options }: Protocol.Question, answer: Protocol.Given | undefined): string {
  if (secret) return answer?.ok === false ? '' : answer?.value === undefined && answer?.ids === undefined ? '' : words.secretGiven;
  const label = (id: string) => options.find((offer) => offer.id === id)?.label ?? id;
  if (answer?.value !== undefined) return answer.value;
  if (answer?.ids !== undefined) return answer.ids.map(label).join(', ');
  const offer = options.find(({ id }) => id === answer?.optionId);
  // That it was allowed or denied is said already.
  return offer === undefined || offer.kind?.endsWith('once') ? '' : offer.label;
}
