// Query results: parses what agents answer to queries. Each agent uses other field names for the same thing.

/** A slash command. */
export interface Command {
  /** As typed, such as `/test`. */
  name: string;
  /** Placeholders for what follows the name. */
  parameters: string;
  description: string;
}

export interface Model {
  id: string;
  name: string;
}

export interface Models {
  models: Model[];
  /** The agent's own modes, if it reports them with the models. */
  modes: Model[];
  current?: string;
}

export interface McpServer {
  id: string;
  state: string;
  details: string[];
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

export function commandsOf(result: unknown): Command[] {
  return items(result, 'commands').flatMap((item) => {
    const usage = typeof item === 'string' ? item : firstText(fields(item), 'name', 'command', 'id');
    const [name, ...parameters] = usage.trim().split(/\s+/);
    if (!name) return [];
    const description = firstText(fields(item), 'description', 'title');
    return [{ name: name.startsWith('/') ? name : `/${name}`, parameters: parameters.join(' '), description }];
  });
}

export function modelsOf(result: unknown): Models {
  const current = firstText(fields(result), 'current', 'currentModelId', 'model');
  const models = items(result, 'models', 'availableModels', 'data').flatMap(modelOf);
  return { models, modes: items(result, 'modes', 'availableModes').flatMap(modelOf), ...(current === '' ? {} : { current }) };
}

function modelOf(item: unknown): Model[] {
  if (typeof item === 'string') return [{ id: item, name: item }];
  const object = fields(item);
  const id = firstText(object, 'id', 'modelId', 'model', 'value', 'slug', 'name');
  return id === '' ? [] : [{ id, name: firstText(object, 'name', 'displayName', 'label') || id }];
}

export function serversOf(result: unknown): McpServer[] {
  return items(result, 'servers', 'data').map((item) => {
    const object = fields(item);
    const tools = object['tools'];
    const count = Array.isArray(tools) ? tools.length : typeof tools === 'number' ? tools : typeof tools === 'object' && tools !== null ? Object.keys(tools).length : undefined;
    const state = firstText(object, 'state', 'status') || (object['enabled'] === false ? 'disabled' : '');
    return {
      id: typeof item === 'string' ? item : firstText(object, 'id', 'name'),
      state,
      details: [firstText(object, 'transport'), firstText(object, 'source', 'scope')].filter((detail) => detail !== ''),
      ...(count === undefined ? {} : { tools: count }),
      error: firstText(object, 'last_error', 'lastError', 'error'),
    };
  });
}

export function skillsOf(result: unknown): { skills: Skill[]; errors: string[]; isTruncated: boolean } {
  const skills = items(result, 'skills', 'data').flatMap((item): Skill[] => {
    const object = fields(item);
    const name = typeof item === 'string' ? item : firstText(object, 'name', 'id');
    return name === '' ? [] : [{ id: firstText(object, 'id', 'path') || name, name, description: firstText(object, 'description'), scope: firstText(object, 'scope', 'source') }];
  });
  const errors = items(result, 'errors').map((item) => (typeof item === 'string' ? item : [firstText(fields(item), 'path'), firstText(fields(item), 'message')].filter(Boolean).join(': ')));
  return { skills, errors, isTruncated: fields(result)['truncated'] === true };
}

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

function items(result: unknown, ...names: string[]): unknown[] {
  if (Array.isArray(result)) return result;
  const found = names.map((name) => fields(result)[name]).find((value) => typeof value === 'object' && value !== null);
  if (Array.isArray(found)) return found;
  return Object.entries(fields(found)).map(([id, value]) => ({ id, ...fields(value) }));
}

/** The first of the named fields that is a non-empty string. */
function firstText(object: Fields, ...names: string[]): string {
  const found = names.map((name) => object[name]).find((value) => typeof value === 'string' && value !== '');
  return typeof found === 'string' ? found : '';
}
