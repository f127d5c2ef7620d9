// A question to the agent about itself, and how far its answer is.
import { useEffect, useState } from 'preact/hooks';
import { Failure } from '@switchboard/client';
import type { Protocol } from '@switchboard/client';
import { explain } from '../../account';
import type { OpenSession } from '../open';

export type Answer =
  | { is: 'loading' }
  | { is: 'there'; result: unknown }
  /** The agent does not tell such things. */
  | { is: 'unavailable' }
  | { is: 'failed'; why: string };

/** Asks as long as it is shown, and again with `reload`. */
export function useAnswer(session: OpenSession, kind: Protocol.Query['kind'], params?: Record<string, unknown>): { answer: Answer; reload: () => void } {
  const [turn, setTurn] = useState(0);
  const [answer, setAnswer] = useState<Answer>({ is: 'loading' });
  const canAsk = session.can('query') || session.can(kind);
  useEffect(() => {
    if (!canAsk) return setAnswer({ is: 'unavailable' });
    let isMine = true;
    setAnswer({ is: 'loading' });
    const asked = { ...params, ...(turn > 0 && kind === 'skills' ? { force_reload: true } : {}) };
    session.send('QUERY', { kind, ...(Object.keys(asked).length > 0 ? { params: asked } : {}) }).then(
      ({ result }) => isMine && setAnswer({ is: 'there', result }),
      (error: unknown) => {
        if (!isMine) return;
        const isUnavailable = error instanceof Failure && error.code === 'UNSUPPORTED';
        setAnswer(isUnavailable ? { is: 'unavailable' } : { is: 'failed', why: explain(error) });
      },
    );
    return () => void (isMine = false);
  }, [session, kind, canAsk, turn, JSON.stringify(params)]);
  return { answer, reload: () => setTurn(turn + 1) };
}
