// Parse arguments: splits a tool's arguments into command, changes and rest, for the user who decides. Pure.
//
// Only fields that are shown in a form of their own are taken out of the rest. The agent may be lying, so a
// field that is not understood must stay visible.

type Fields = Record<string, unknown>;

export interface Change {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

/** The rest is JSON. */
export interface ParsedArguments {
  readonly command?: string;
  readonly changes: readonly Change[];
  readonly rest?: string;
}

const COMMAND_FIELDS = ['command', 'cmd'];
const CHANGE_LIST_FIELDS = ['diffs', 'changes', 'edits'];
const OLD_TEXT_FIELDS = ['oldText', 'old_string', 'oldString', 'old_str'];
const NEW_TEXT_FIELDS = ['newText', 'new_string', 'newString', 'new_str'];
const PATH_FIELDS = ['path', 'file_path', 'filePath'];

export function parseArguments(args: unknown): ParsedArguments {
  if (args === undefined || args === null) return { changes: [] };
  if (typeof args === 'string') return { command: args, changes: [] };
  if (typeof args !== 'object') return { changes: [], rest: String(args) };
  if (Array.isArray(args)) return { changes: [], ...(args.length === 0 ? {} : { rest: toJson(args) }) };
  const rest: Fields = { ...(args as Fields) };
  const command = takeCommand(rest);
  const path = firstText(rest, PATH_FIELDS)?.value ?? '';
  const changes = [...takeChange(rest, ''), ...CHANGE_LIST_FIELDS.flatMap((name) => takeList(rest, name, path))];
  return { ...(command === undefined ? {} : { command }), changes, ...(Object.keys(rest).length === 0 ? {} : { rest: toJson(rest) }) };
}

/** Takes out the first field that is a command line. */
function takeCommand(fields: Fields): string | undefined {
  const name = COMMAND_FIELDS.find((one) => commandLine(fields[one]) !== undefined);
  if (name === undefined) return undefined;
  const command = commandLine(fields[name]);
  delete fields[name];
  return command;
}

/** Takes out the fields of one change. */
function takeChange(fields: Fields, defaultPath: string): Change[] {
  const after = firstText(fields, NEW_TEXT_FIELDS);
  if (!after) return [];
  const [path, before] = [firstText(fields, PATH_FIELDS), firstText(fields, OLD_TEXT_FIELDS)];
  for (const used of [after, path, before]) if (used) delete fields[used.name];
  return [{ path: path?.value ?? defaultPath, before: before?.value ?? '', after: after.value }];
}

/** The changes in a list, which is taken out only if it contains nothing else. */
function takeList(fields: Fields, name: string, defaultPath: string): Change[] {
  const list = fields[name];
  if (!Array.isArray(list)) return [];
  const copies = list.map((one: unknown) => (typeof one === 'object' && one !== null ? { ...one } as Fields : undefined));
  const changes = copies.flatMap((one) => (one ? takeChange(one, defaultPath) : []));
  if (copies.every((one) => one !== undefined && Object.keys(one).length === 0)) delete fields[name];
  return changes;
}

function firstText(fields: Fields, names: readonly string[]): { name: string; value: string } | undefined {
  const name = names.find((one) => typeof fields[one] === 'string');
  return name === undefined ? undefined : { name, value: fields[name] as string };
}

/** As it would be typed in a shell. */
function commandLine(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value) || value.length === 0 || !value.every((part) => typeof part === 'string')) return undefined;
  return (value as string[]).map((part) => (/^[\w@%+=:,./-]+$/.test(part) ? part : `'${part.replaceAll("'", "'\\''")}'`)).join(' ');
}

function toJson(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
