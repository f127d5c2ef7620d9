// How a line ended, and what to do about it.

/** The end of a line. */
export interface LineEnd {
  /** A close code of the protocol; 1006 if nobody said why. */
  code: number;
  reason: string;
  /** When the gateway wants to see us again. */
  retryAfterMs?: number;
}

/** What to do after the end of a line. */
export type Verdict =
  /** Come back, waiting longer each time. */
  | 'retry'
  /** Come back after the time that was told. */
  | 'as-told'
  /** Come back with a new token, or not at all. */
  | 'new-token'
  /** Come back, much later. */
  | 'later'
  /** Come back, but without what was being sent: it may be what the gateway did not like. */
  | 'retry-without'
  /** It would end in the same way again. */
  | 'end';

/** What a close code asks for. */
export function verdict({ code }: LineEnd): Verdict {
  switch (code) {
    case 1002:
    case 1003:
    case 1007:
    case 1009:
      return 'retry-without';
    case 1012:
      return 'as-told';
    case 4401:
      return 'new-token';
    case 4429:
      return 'later';
    case 4400:
    case 4403:
    case 4404:
    case 4409:
      return 'end';
    default:
      return 'retry';
  }
}

/** The wait that stands in a reason like `restart; retryAfterMs=1500`. */
export function waitIn(reason: string): number | undefined {
  const told = /retryAfterMs=(\d+)/.exec(reason)?.[1];
  return told === undefined ? undefined : Number(told);
}
