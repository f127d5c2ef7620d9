// Connection badge: the state of the connection as text.
import type { Failure } from '@switchboard/client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useCountdown } from '../components/use-countdown';
import { text } from '../text';
import type { ConnectionState, OpenSession } from './open-session';

/** Shorter interruptions are not shown. */
const MIN_SHOWN_BREAK_MS = 700;
const strings = text.sessions.connection;

/** Hides short interruptions. */
function useStableConnection(connection: ConnectionState): ConnectionState {
  const [shown, setShown] = useState(connection);
  const breakSince = useRef<number | undefined>(undefined);
  useEffect(() => {
    const isBreak = connection.is === 'reconnecting' || connection.is === 'offline' || connection.is === 'connecting';
    if (isBreak && shown.is === 'live') {
      breakSince.current ??= Date.now();
      const timer = setTimeout(() => setShown(connection), breakSince.current + MIN_SHOWN_BREAK_MS - Date.now());
      return () => clearTimeout(timer);
    }
    breakSince.current = undefined;
    setShown(connection.is === 'resumed' && shown.is === 'live' ? { is: 'live' } : connection);
    return undefined;
  }, [connection]);
  return shown;
}

export function ConnectionBadge({ session }: { session: OpenSession }) {
  const shown = useStableConnection(session.connection.value);
  return (
    <div class={`connection ${shown.is}`} data-part="connection" data-state={shown.is} role="status">
      <span class="mark" aria-hidden="true" />
      {shown.is === 'reconnecting' ? <Reconnecting retryAt={shown.retryAt} onReconnect={() => session.reconnectNow()} /> : <span class="connection-text">{describeConnection(shown)}</span>}
    </div>
  );
}

/** The countdown is hidden from screen readers, which would read it every second. */
function Reconnecting({ retryAt, onReconnect }: { retryAt: number | undefined; onReconnect: () => void }) {
  const seconds = useCountdown(retryAt);
  return (
    <>
      <span class="visually-hidden">{strings.reconnecting}</span>
      <span class="connection-text" aria-hidden="true">{seconds > 0 ? strings.reconnectingIn(seconds) : strings.reconnecting}</span>
      <button type="button" class="button quiet small" data-part="hurry" onClick={onReconnect}>{strings.now}</button>
    </>
  );
}

function describeConnection(connection: ConnectionState): string {
  switch (connection.is) {
    case 'resumed':
      return strings.resumed(connection.missed);
    case 'ended':
      return describeEnd(connection.failure);
    default:
      return strings[connection.is];
  }
}

/** Why a session will not reconnect. */
export function describeEnd(failure: Failure): string {
  switch (failure.status) {
    case 4401:
    case 401:
      return strings.signedOut;
    case 4403:
      return strings.forbidden;
    case 4404:
      return strings.notFound;
    case 4409:
      return strings.deleted;
    default:
      return strings.other(failure.message);
  }
}
