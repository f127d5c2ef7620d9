// Older entries: the line above the first entry that loads more.
import { text } from '../../text';
import type { OpenSession } from '../open-session';

export function OlderEntries({ session }: { session: OpenSession }) {
  const older = session.older.value;
  const isEmpty = session.timeline.value.entries.length === 0;
  if (!session.isReady.value && isEmpty) return <p class="older soft small">{text.transcript.opening}</p>;
  switch (older) {
    case 'loading':
      return (
        <p class="older soft small" role="status">
          {text.transcript.loadingOlder}
        </p>
      );
    case 'failed':
      return (
        <p class="older small" role="alert">
          {text.transcript.olderFailed}{' '}
          <button type="button" class="quiet-button" data-part="retry-older" onClick={() => void session.loadOlder()}>
            {text.common.retry}
          </button>
        </p>
      );
    case 'some':
      return (
        <p class="older small">
          <button type="button" class="quiet-button" onClick={() => void session.loadOlder()}>
            {text.transcript.loadOlder}
          </button>
        </p>
      );
    default:
      return <p class="older soft small">{isEmpty ? text.transcript.empty : text.transcript.beginning}</p>;
  }
}
