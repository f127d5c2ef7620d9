// Query section: one section of the tools dialog, with the state of its query.
import type { ComponentChildren } from 'preact';
import { text } from '../../text';
import type { QueryState } from './agent-query';

const strings = text.composer;

export function QuerySection({ title, part, unavailable, query, reload, children }: { title: string; part: string; unavailable: string; query: QueryState; reload: () => void; children: (result: unknown) => ComponentChildren }) {
  return (
    <section class="tool-part" data-part={part} data-state={query.is} aria-busy={query.is === 'loading'}>
      <header>
        <h3>{title}</h3>
        {query.is !== 'unavailable' && <button type="button" class="button quiet small" aria-disabled={query.is === 'loading'} onClick={() => query.is !== 'loading' && reload()}>{strings.refresh}</button>}
      </header>
      {query.is === 'loading' && <p class="soft" role="status">{text.common.loading}</p>}
      {query.is === 'unavailable' && <p class="soft">{unavailable}</p>}
      {query.is === 'failed' && <p class="error" role="alert">{query.error}</p>}
      {query.is === 'there' && children(query.result)}
    </section>
  );
}
