// Close: why a connection ended, and what the client does next.

/** Why a connection ended. */
export interface CloseInfo {
  /** A close code of the protocol; 1006 if none was received. */
  code: number;
  reason: string;
  /** The wait that the gateway asked for. */
  retryAfterMs?: number;
}

/** What the client does after a close. */
export type CloseAction =
  /** Reconnect with backoff. */
  | 'retry'
  /** Reconnect after `retryAfterMs`. */
  | 'retry-after'
  /** Get a new token and reconnect; end if there is none. */
  | 'renew-token'
  /** Reconnect after a long pause. */
  | 'slow-down'
  /** Reconnect, but reject the commands that were sent: one of them may have caused the close. */
  | 'discard-sent'
  /** Do not reconnect: the next connection would be closed the same way. */
  | 'end';

/** The action for a close code. */
export function closeAction({ code }: CloseInfo): CloseAction {
  switch (code) {
    case 1002:
    case 1003:
    case 1007:
    case 1009:
      return 'discard-sent';
    case 1012:
      return 'retry-after';
    case 4401:
      return 'renew-token';
    case 4429:
      return 'slow-down';
    case 4400:
    case 4403:
    case 4404:
    case 4409:
      return 'end';
    default:
      return 'retry';
  }
}

/** The wait named in a close reason such as `restart; retryAfterMs=1500`. */
export function retryAfterIn(reason: string): number | undefined {
  const milliseconds = /retryAfterMs=(\d+)/.exec(reason)?.[1];
  return milliseconds === undefined ? undefined : Number(milliseconds);
}
