// What a tool would be used with, taken apart for somebody who has to decide. Pure.
//
// Whatever is shown in a form of its own is left out of the rest; nothing else is. Who asks may be lying:
// a field that is not understood must be seen.

type Fields = Record<string, unknown>;

/** A change to a file. */
export interface Change {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

/** A command line, changes, and everything else as JSON. */
export interface Parts {
  readonly command?: string;
  readonly changes: readonly Change[];
  readonly rest?: string;
}

const COMMANDS = ['command', 'cmd'];
const LISTS = ['diffs', 'changes', 'edits'];
const BEFORE = ['oldText', 'old_string', 'oldString', 'old_str'];
const AFTER = ['newText', 'new_string', 'newString', 'new_str'];
const PATH = ['path', 'file_path', 'filePath'];

export function takeApart(args: unknown): Parts {
  if (args === undefined || args === null) return { changes: [] };
  if (typeof args === 'string') return { command: args, changes: [] };
  if (typeof args !== 'object') return { changes: [], rest: String(args) };
  if (Array.isArray(args)) return { changes: [], ...(args.length === 0 ? {} : { rest: written(args) }) };
  const rest: Fields = { ...(args as Fields) };
  const command = takeCommand(rest);
  const path = text(rest, PATH)?.value ?? '';
  const changes = [...takeChange(rest, ''), ...LISTS.flatMap((name) => takeList(rest, name, path))];
  return { ...(command === undefined ? {} : { command }), changes, ...(Object.keys(rest).length === 0 ? {} : { rest: written(rest) }) };
}

/** The first that can be shown as a command line. */
function takeCommand(from: Fields): string | undefined {
  const name = COMMANDS.find((one) => commandOf(from[one]) !== undefined);
  if (name === undefined) return undefined;
  const command = commandOf(from[name]);
  delete from[name];
  return command;
}

/** A change with its fields, which are taken out. */
function takeChange(from: Fields, around: string): Change[] {
  const after = text(from, AFTER);
  if (!after) return [];
  const [path, before] = [text(from, PATH), text(from, BEFORE)];
  for (const used of [after, path, before]) if (used) delete from[used.name];
  return [{ path: path?.value ?? around, before: before?.value ?? '', after: after.value }];
}

/** The changes of a list. It is taken out if they are all that is in it. */
function takeList(from: Fields, name: string, around: string): Change[] {
  const list = from[name];
  if (!Array.isArray(list)) return [];
  const left = list.map((one: unknown) => (typeof one === 'object' && one !== null ? { ...one } as Fields : undefined));
  const changes = left.flatMap((one) => (one ? takeChange(one, around) : []));
  if (left.every((one) => one !== undefined && Object.keys(one).length === 0)) delete from[name];
  return changes;
}

function text(among: Fields, names: readonly string[]): { name: string; value: string } | undefined {
  const name = names.find((one) => typeof among[one] === 'string');
  return name === undefined ? undefined : { name, value: among[name] as string };
}

/** As it would be typed. */
function commandOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value) || value.length === 0 || !value.every((part) => typeof part === 'string')) return undefined;
  return (value as string[]).map((part) => (/^[\w@%+=:,./-]+$/.test(part) ? part : `'${part.replaceAll("'", "'\\''")}'`)).join(' ');
}

function written(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
