// Token usage: tokens, cost and context left of a session.
import { text } from '../../text';
import type { OpenSession } from '../open-session';

/** Renders nothing until something was used. */
export function TokenUsage({ session }: { session: OpenSession }) {
  const { tokenUsage, contextLeftPercent } = session.view.value;
  const { input, output, total, cost } = tokenUsage;
  if (total === 0 && cost === undefined && contextLeftPercent === undefined) return null;
  return (
    <span class="usage" data-part="usage" role="group" aria-label={text.transcript.usage}>
      {total > 0 && <span title={text.transcript.tokensExactly(input, output)}>{text.transcript.tokensShort(total)}</span>}
      {cost !== undefined && cost > 0 && <span>{text.transcript.cost(cost)}</span>}
      {contextLeftPercent !== undefined && (
        <span title={text.transcript.contextLeft(contextLeftPercent)}>
          {text.transcript.contextShort(contextLeftPercent)}
        </span>
      )}
    </span>
  );
}
