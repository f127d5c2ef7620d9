// What a tool would be used with, so that somebody can decide.
import type { Protocol } from '@switchboard/client';
import { text } from '../../text';

const words = text.questions;
type Fields = Record<string, unknown>;

export function Arguments({ tool }: { tool: Protocol.AskedTool }) {
  const { command, changes, rest } = takeApart(tool.args);
  return (
    <div class="question-tool">
      <p class="small soft">{words.ofTool(tool.name)}</p>
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
      <pre class="question-code" tabIndex={0}><code>{code}</code></pre>
    </>
  );
}

interface Change {
  path: string;
  before: string;
  after: string;
}

function Changed({ path, before, after }: Change) {
  const lines = (part: string, sign: string) => (part === '' ? [] : part.split('\n').map((line) => `${sign} ${line}`));
  const gone = lines(before, '−');
  const come = lines(after, '+');
  return (
    <>
      <p class="small soft">{words.wouldChange(path)}</p>
      <pre class="question-code diff" tabIndex={0}>
        {gone.length > 0 && <del><span class="heard">{words.before}</span>{gone.join('\n')}</del>}
        {come.length > 0 && <ins><span class="heard">{words.after}</span>{come.join('\n')}</ins>}
      </pre>
    </>
  );
}

/** The command line, the changes of files, and everything else as JSON. */
function takeApart(args: unknown): { command?: string; changes: Change[]; rest?: string } {
  if (typeof args === 'string') return { command: args, changes: [] };
  if (typeof args !== 'object' || args === null) return args === undefined || args === null ? { changes: [] } : { changes: [], rest: String(args) };
  const known = { ...(args as Fields) };
  const command = commandOf(known['command'] ?? known['cmd']);
  if (command !== undefined) delete known['command'], delete known['cmd'];
  const nested = ['diffs', 'changes', 'edits'].flatMap((name) => (Array.isArray(known[name]) ? (known[name] as unknown[]) : []));
  const changes = [args, ...nested].flatMap((one) => changeOf(one, known));
  if (changes.length > 0) for (const name of ['diffs', 'changes', 'edits', ...BEFORE, ...AFTER, ...PATH]) delete known[name];
  const isEmpty = Array.isArray(args) ? args.length === 0 : Object.keys(known).length === 0;
  return { ...(command === undefined ? {} : { command }), changes, ...(isEmpty ? {} : { rest: JSON.stringify(Array.isArray(args) ? args : known, null, 2) }) };
}

const BEFORE = ['oldText', 'old_string', 'oldString', 'old_str'];
const AFTER = ['newText', 'new_string', 'newString', 'new_str'];
const PATH = ['path', 'file_path', 'filePath'];

function changeOf(one: unknown, around: Fields): Change[] {
  if (typeof one !== 'object' || one === null) return [];
  const find = (names: readonly string[], among: Fields) => names.map((name) => among[name]).find((value) => typeof value === 'string') as string | undefined;
  const after = find(AFTER, one as Fields);
  if (after === undefined) return [];
  return [{ path: find(PATH, one as Fields) ?? find(PATH, around) ?? '', before: find(BEFORE, one as Fields) ?? '', after }];
}

/** As it would be typed. */
function commandOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value) || !value.every((part) => typeof part === 'string')) return undefined;
  return (value as string[]).map((part) => (/^[\w@%+=:,./-]+$/.test(part) ? part : `'${part.replaceAll("'", "'\\''")}'`)).join(' ');
}
