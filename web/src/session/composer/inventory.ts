// What agents tell about themselves, read with patience: each has its own way to say the same.

/** A command that can begin a prompt. */
export interface Command {
  /** As it is typed: `/test`. */
  word: string;
  /** What follows it. */
  takes: string;
  description: string;
}

export interface Model {
  id: string;
  name: string;
}

export interface Models {
  models: Model[];
  /** The agent's own modes, if it tells them here. */
  modes: Model[];
  current?: string;
}

export interface Server {
  id: string;
  state: string;
  about: string[];
  tools?: number;
  error: string;
}

export interface Skill {
  id: string;
  name: string;
  description: string;
  scope: string;
}

type Fields = Record<string, unknown>;

export function commandsOf(told: unknown): Command[] {
  return items(told, 'commands').flatMap((item) => {
    const said = typeof item === 'string' ? item : first(fields(item), 'name', 'command', 'id');
    const [word, ...takes] = said.trim().split(/\s+/);
    if (!word) return [];
    const description = first(fields(item), 'description', 'title');
    return [{ word: word.startsWith('/') ? word : `/${word}`, takes: takes.join(' '), description }];
  });
}

export function modelsOf(told: unknown): Models {
  const current = first(fields(told), 'current', 'currentModelId', 'model');
  const models = items(told, 'models', 'availableModels', 'data').flatMap(choice);
  return { models, modes: items(told, 'modes', 'availableModes').flatMap(choice), ...(current === '' ? {} : { current }) };
}

function choice(item: unknown): Model[] {
  if (typeof item === 'string') return [{ id: item, name: item }];
  const known = fields(item);
  const id = first(known, 'id', 'modelId', 'model', 'value', 'slug', 'name');
  return id === '' ? [] : [{ id, name: first(known, 'name', 'displayName', 'label') || id }];
}

export function serversOf(told: unknown): Server[] {
  return items(told, 'servers', 'data').map((item) => {
    const known = fields(item);
    const tools = known['tools'];
    const count = Array.isArray(tools) ? tools.length : typeof tools === 'number' ? tools : typeof tools === 'object' && tools !== null ? Object.keys(tools).length : undefined;
    const state = first(known, 'state', 'status') || (known['enabled'] === false ? 'disabled' : '');
    return {
      id: typeof item === 'string' ? item : first(known, 'id', 'name'),
      state,
      about: [first(known, 'transport'), first(known, 'source', 'scope')].filter((word) => word !== ''),
      ...(count === undefined ? {} : { tools: count }),
      error: first(known, 'last_error', 'lastError', 'error'),
    };
  });
}

export function skillsOf(told: unknown): { skills: Skill[]; errors: string[]; isTruncated: boolean } {
  const skills = items(told, 'skills', 'data').flatMap((item): Skill[] => {
    const known = fields(item);
    const name = typeof item === 'string' ? item : first(known, 'name', 'id');
    return name === '' ? [] : [{ id: first(known, 'id', 'path') || name, name, description: first(known, 'description'), scope: first(known, 'scope', 'source') }];
  });
  const errors = items(told, 'errors').map((item) => (typeof item === 'string' ? item : [first(fields(item), 'path'), first(fields(item), 'message')].filter(Boolean).join(': ')));
  return { skills, errors, isTruncated: fields(told)['truncated'] === true };
}

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

function items(told: unknown, ...names: string[]): unknown[] {
  if (Array.isArray(told)) return told;
  const found = names.map((name) => fields(told)[name]).find((value) => typeof value === 'object' && value !== null);
  if (Array.isArray(found)) return found;
  return Object.entries(fields(found)).map(([id, value]) => ({ id, ...fields(value) }));
}

/** The first of some fields that has words. */
function first(known: Fields, ...names: string[]): string {
  const found = names.map((name) => known[name]).find((value) => typeof value === 'string' && value !== '');
  return typeof found === 'string' ? found : '';
}
