// How the line to the gateway is, in words.
import type { Failure } from '@switchboard/client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useCountdown } from '../parts/form';
import { text } from '../text';
import type { Connection, OpenSession } from './open';

/** A break that is over by then is not worth a word. */
const CALM_MS = 700;
const words = text.sessions.connection;

/** What to show: a short break is not shown at all. */
function useCalm(now: Connection): Connection {
  const [shown, setShown] = useState(now);
  const since = useRef<number | undefined>(undefined);
  useEffect(() => {
    const isBreak = now.is === 'reconnecting' || now.is === 'offline' || now.is === 'connecting';
    if (isBreak && shown.is === 'live') {
      since.current ??= Date.now();
      const timer = setTimeout(() => setShown(now), since.current + CALM_MS - Date.now());
      return () => clearTimeout(timer);
    }
    since.current = undefined;
    setShown(now.is === 'resumed' && shown.is === 'live' ? { is: 'live' } : now);
    return undefined;
  }, [now]);
  return shown;
}

export function ConnectionBadge({ session }: { session: OpenSession }) {
  const shown = useCalm(session.connection.value);
  return (
    <div class={`connection ${shown.is}`} data-part="connection" data-state={shown.is} role="status">
      <span class="mark" aria-hidden="true" />
      {shown.is === 'reconnecting' ? <Reconnecting retryAt={shown.retryAt} onNow={() => session.hurry()} /> : <span class="connection-words">{wordsFor(shown)}</span>}
    </div>
  );
}

/** The seconds are for eyes only: they would be read out each time. */
function Reconnecting({ retryAt, onNow }: { retryAt: number | undefined; onNow: () => void }) {
  const seconds = useCountdown(retryAt);
  return (
    <>
      <span class="heard">{words.reconnecting}</span>
      <span class="connection-words" aria-hidden="true">{seconds > 0 ? words.reconnectingIn(seconds) : words.reconnecting}</span>
      <button type="button" class="button quiet small" data-part="hurry" onClick={onNow}>{words.now}</button>
    </>
  );
}

function wordsFor(now: Connection): string {
  switch (now.is) {
    case 'resumed':
      return words.resumed(now.missed);
    case 'ended':
      return whyEnded(now.failure);
    default:
      return words[now.is];
  }
}

/** Why a session will not come back. */
export function whyEnded(failure: Failure): string {
  switch (failure.status) {
    case 4401:
    case 401:
      return words.signedOut;
    case 4403:
      return words.forbidden;
    case 4404:
      return words.notFound;
    case 4409:
      return words.deleted;
    default:
      return words.other(failure.message);
  }
}
