// What a tool was given and what came out, sorted by how it can be shown. Pure.
import type { Change } from './diff';

/** A file, and where in it. */
export interface Spot {
  readonly path: string;
  readonly line?: number;
}

export interface Output {
  readonly words: string;
  /** Whether `words` are data that was written out. */
  readonly isData: boolean;
  readonly changes: readonly Change[];
  readonly spots: readonly Spot[];
  readonly terminals: readonly string[];
}

const NOTHING: Output = { words: '', isData: false, changes: [], spots: [], terminals: [] };

/** Agents that know of changes, places and terminals tell them beside the text; everything else is text or data. */
export function output(value: unknown): Output {
  if (value === undefined || value === null) return NOTHING;
  if (typeof value === 'string') return { ...NOTHING, words: value };
  if (!isRecord(value) || !isInParts(value)) return { ...NOTHING, words: written(value), isData: true };
  const { text, raw, diffs, locations, terminals } = value;
  const rest = text ?? raw;
  return {
    words: rest === undefined ? '' : typeof rest === 'string' ? rest : written(rest),
    isData: rest !== undefined && typeof rest !== 'string',
    changes: list(diffs).filter(isRecord).map(change),
    spots: list(locations).filter(isRecord).map(spot),
    terminals: list(terminals).map(String),
  };
}

const PARTS = new Set(['text', 'raw', 'diffs', 'locations', 'terminals']);

function isInParts(value: Record<string, unknown>): boolean {
  const names = Object.keys(value);
  return names.length > 0 && names.every((name) => PARTS.has(name)) && (typeof value['text'] === 'string' || names.some((name) => Array.isArray(value[name])));
}

function change({ path, oldText, newText }: Record<string, unknown>): Change {
  const before = typeof oldText === 'string' ? { before: oldText } : {};
  return { path: String(path ?? ''), ...before, after: typeof newText === 'string' ? newText : '' };
}

function spot({ path, line }: Record<string, unknown>): Spot {
  return { path: String(path ?? ''), ...(typeof line === 'number' ? { line } : {}) };
}

function written(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? '';
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
