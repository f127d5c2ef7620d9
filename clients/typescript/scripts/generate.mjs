// Writes the types of the protocol and of the HTTP API from what the gateway itself says about them.
//
//   node scripts/generate.mjs            writes src/generated/*.ts
//   node scripts/generate.mjs --check    fails if they are not what would be written
//
// The gateway's program is SWITCHBOARD_BIN, by default ../../target/debug/switchboard.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const program = resolve(here, process.env.SWITCHBOARD_BIN ?? '../../target/debug/switchboard');

const asked = (name) => JSON.parse(execFileSync(program, ['schema', name], { maxBuffer: 64 << 20 }).toString());
const isName = (word) => /^[A-Za-z_$][\w$]*$/.test(word);
const indented = (text) => text.replace(/\n/g, '\n  ');
const union = (parts) => [...new Set(parts)].join(' | ');

/** A comment above what it describes. */
function comment(text) {
  return text ? `/** ${text.replace(/\*\//g, '* /').replace(/\s*\n\s*/g, ' ')} */\n` : '';
}

/** A schema as a TypeScript type. */
function type(schema) {
  if (schema === true || schema === undefined) return 'unknown';
  if (schema.$ref) return schema.$ref.split('/').at(-1);
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum) return union(schema.enum.map((word) => JSON.stringify(word)));
  if (schema.oneOf ?? schema.anyOf) return union((schema.oneOf ?? schema.anyOf).map(bracketed));
  if (schema.allOf) return schema.allOf.map(bracketed).join(' & ');
  const kinds = [schema.type ?? 'any'].flat();
  return union(kinds.map((kind) => plain(kind, schema)));
}

function bracketed(schema) {
  const text = type(schema);
  return / [|&] /.test(text) && !text.startsWith('{') ? `(${text})` : text;
}

function plain(kind, schema) {
  switch (kind) {
    case 'null': return 'null';
    case 'boolean': return 'boolean';
    case 'string': return 'string';
    case 'integer':
    case 'number': return 'number';
    case 'array': return `Array<${type(schema.items)}>`;
    case 'object': return object(schema);
    default: return 'unknown';
  }
}

function object(schema) {
  const fields = Object.entries(schema.properties ?? {});
  if (fields.length === 0) {
    const values = schema.additionalProperties;
    return `Record<string, ${values && values !== true ? type(values) : 'unknown'}>`;
  }
  const lines = fields.map(([name, field]) => {
    const mark = schema.required?.includes(name) ? '' : '?';
    return `${comment(field.description)}${isName(name) ? name : JSON.stringify(name)}${mark}: ${type(field)};`;
  });
  return `{\n  ${indented(lines.join('\n'))}\n}`;
}

function declaration(name, schema) {
  return `${comment(schema.description ?? `\`${name}\` of the gateway's description.`)}export type ${name} = ${type(schema)};\n`;
}

function declarations(schemas) {
  return Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, schema]) => declaration(name, schema));
}

const head = (of) => `// Made by scripts/generate.mjs from the gateway's ${of} document. Do not edit.\n`;

/** What goes over a socket. */
function protocol(document) {
  const { messages, schemas } = document.components;
  const of = (side) => Object.entries(messages)
    .filter(([key]) => key.startsWith(`${side}.`))
    .map(([key, message]) => [key.slice(side.length + 1), message.payload.properties])
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const payloads = (name, about, side) =>
    `/** ${about} */\nexport interface ${name} {\n${of(side).map(([kind, fields]) => `  ${kind}: ${indented(type(fields.payload))};`).join('\n')}\n}\n`;
  const journaled = of('gateway').filter(([, fields]) => fields.offset).map(([kind]) => JSON.stringify(kind));
  return [
    head('AsyncAPI'),
    payloads('ClientPayloads', 'What a client can send: the payload of each type.', 'client'),
    payloads('GatewayPayloads', 'What the gateway sends: the payload of each type.', 'gateway'),
    `/** The types that stand in the journal. */\nexport type EventType = ${journaled.join(' | ')};\n`,
    ...declarations(schemas),
  ].join('\n');
}

/** What goes over HTTP. */
const http = (document) => [head('OpenAPI'), ...declarations(document.components.schemas)].join('\n');

const made = { 'protocol.ts': protocol(asked('asyncapi')), 'http.ts': http(asked('openapi')) };
let stale = false;
for (const [name, text] of Object.entries(made)) {
  const path = resolve(here, 'src/generated', name);
  if (process.argv.includes('--check')) {
    if (existsSync(path) && readFileSync(path, 'utf8') === text) continue;
    console.error(`src/generated/${name} is not current: run npm run generate and commit it`);
    stale = true;
  } else {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}
process.exit(stale ? 1 : 0);
