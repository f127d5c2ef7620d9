// What a tool would be used with, so that somebody can decide.
import type { Protocol } from '@switchboard/client';
import { plainly } from '../../parts/plainly';
import { text } from '../../text';
import { takeApart } from './parts';
import type { Change } from './parts';

const words = text.questions;
/** Agents that have no names for their tools tell what kind they are; the title says more. */
const KINDS: ReadonlySet<string> = new Set(['read', 'edit', 'delete', 'move', 'search', 'execute', 'think', 'fetch', 'other']);

export function Arguments({ tool }: { tool: Protocol.AskedTool }) {
  const { command, changes, rest } = takeApart(tool.args);
  return (
    <div class="question-tool">
      {!KINDS.has(tool.name) && <p class="small soft">{words.ofTool(plainly(tool.name))}</p>}
      {command !== undefined && <Code title={words.wouldDo} code={command} />}
      {changes.map((change) => <Changed key={`${change.path}:${change.before}`} {...change} />)}
      {rest !== undefined && <Code title={command === undefined && changes.length === 0 ? words.withArguments : ''} code={rest} />}
    </div>
  );
}

function Code({ title, code }: { title: string; code: string }) {
  return (
    <>
      {title !== '' && <p class="small soft">{title}</p>}
      <pre class="question-code" tabIndex={0}><code>{plainly(code)}</code></pre>
    </>
  );
}

function Changed({ path, before, after }: Change) {
  const lines = (part: string, sign: string) => (part === '' ? [] : plainly(part).split('\n').map((line) => `${sign} ${line}`));
  const gone = lines(before, '−');
  const come = lines(after, '+');
  return (
    <>
      <p class="small soft">{words.wouldChange(plainly(path))}</p>
      <pre class="question-code diff" tabIndex={0}>
        {gone.length > 0 && <del><span class="heard">{words.before}</span>{gone.join('\n')}</del>}
        {come.length > 0 && <ins><span class="heard">{words.after}</span>{come.join('\n')}</ins>}
      </pre>
    </>
  );
}
