// A part of the panel of tools and skills.
import type { ComponentChildren } from 'preact';
import { text } from '../../text';
import type { Answer } from './asking';

const words = text.composer;

/** Loading, there, unavailable or failed. */
export function Part({ title, part, answer, reload, children }: { title: string; part: string; answer: Answer; reload: () => void; children: (result: unknown) => ComponentChildren }) {
  return (
    <section class="tool-part" data-part={part} data-state={answer.is} aria-busy={answer.is === 'loading'}>
      <header>
        <h3>{title}</h3>
        {answer.is !== 'unavailable' && <button type="button" class="button quiet small" aria-disabled={answer.is === 'loading'} onClick={() => answer.is !== 'loading' && reload()}>{words.refresh}</button>}
      </header>
      {answer.is === 'loading' && <p class="soft" role="status">{text.common.loading}</p>}
      {answer.is === 'unavailable' && <p class="soft">{words.unavailable}</p>}
      {answer.is === 'failed' && <p class="error" role="alert">{answer.why}</p>}
      {answer.is === 'there' && children(answer.result)}
    </section>
  );
}
