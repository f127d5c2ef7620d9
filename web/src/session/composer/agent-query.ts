// Agent query: asks the agent for models, skills or servers and tracks the answer.
import { useEffect, useState } from 'preact/hooks';
import { Failure } from '@switchboard/client';
import type { Protocol } from '@switchboard/client';
import { explain } from '../../auth';
import type { OpenSession } from '../open-session';

export type QueryState =
  | { is: 'loading' }
  | { is: 'there'; result: unknown }
  /** The agent does not support this query. */
  | { is: 'unavailable' }
  | { is: 'failed'; error: string };

/** Queries when mounted, and again on `reload`. */
export function useAgentQuery(session: OpenSession, kind: Protocol.Query['kind'], params?: Record<string, unknown>): { state: QueryState; reload: () => void } {
  const [reloads, setReloads] = useState(0);
  const [state, setState] = useState<QueryState>({ is: 'loading' });
  const canAsk = session.can('query') || session.can(kind);
  useEffect(() => {
    if (!canAsk) return setState({ is: 'unavailable' });
    let isCurrent = true;
    setState({ is: 'loading' });
    const parameters = { ...params, ...(reloads > 0 && kind === 'skills' ? { force_reload: true } : {}) };
    session.send('QUERY', { kind, ...(Object.keys(parameters).length > 0 ? { params: parameters } : {}) }).then(
      ({ result }) => isCurrent && setState({ is: 'there', result }),
      (error: unknown) => {
        if (!isCurrent) return;
        const isUnavailable = error instanceof Failure && error.code === 'UNSUPPORTED';
        setState(isUnavailable ? { is: 'unavailable' } : { is: 'failed', error: explain(error) });
      },
    );
    return () => void (isCurrent = false);
  }, [session, kind, canAsk, reloads, JSON.stringify(params)]);
  return { state, reload: () => setReloads(reloads + 1) };
}
