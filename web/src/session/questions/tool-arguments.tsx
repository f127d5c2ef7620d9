// Tool arguments: what a tool would be called with, for the user who decides.
import type { Protocol } from '@switchboard/client';
import { showInvisible } from '../../components/visible-text';
import { HighlightedText } from '../../highlight/highlighted-text';
import { text } from '../../text';
import { parseArguments } from './parse-arguments';
import type { Change } from './parse-arguments';

const strings = text.questions;
/** Agents without tool names report the kind of tool instead; the title says more. */
const TOOL_KINDS: ReadonlySet<string> = new Set(['read', 'edit', 'delete', 'move', 'search', 'execute', 'think', 'fetch', 'other']);

export function ToolArguments({ tool }: { tool: Protocol.AskedTool }) {
  const { command, changes, rest } = parseArguments(tool.args);
  return (
    <div class="question-tool">
      {!TOOL_KINDS.has(tool.name) && <p class="small soft">{strings.ofTool(showInvisible(tool.name))}</p>}
      {command !== undefined && <Code title={strings.wouldDo} code={command} language="bash" />}
      {changes.map((change) => <FileChange key={`${change.path}:${change.before}`} {...change} />)}
      {rest !== undefined && <Code title={command === undefined && changes.length === 0 ? strings.withArguments : ''} code={rest} language="json" />}
    </div>
  );
}

function Code({ title, code, language }: { title: string; code: string; language: string }) {
  return (
    <>
      {title !== '' && <p class="small soft">{title}</p>}
      <pre class="question-code" tabIndex={0}><code><HighlightedText code={code} language={language} /></code></pre>
    </>
  );
}

function FileChange({ path, before, after }: Change) {
  const markLines = (part: string, sign: string) => (part === '' ? [] : showInvisible(part).split('\n').map((line) => `${sign} ${line}`));
  const removed = markLines(before, '−');
  const added = markLines(after, '+');
  return (
    <>
      <p class="small soft">{strings.wouldChange(showInvisible(path))}</p>
      <pre class="question-code diff" tabIndex={0}>
        {removed.length > 0 && <del><span class="visually-hidden">{strings.before}</span>{removed.join('\n')}</del>}
        {added.length > 0 && <ins><span class="visually-hidden">{strings.after}</span>{added.join('\n')}</ins>}
      </pre>
    </>
  );
}
