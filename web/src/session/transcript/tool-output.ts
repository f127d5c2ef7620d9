// Tool output: parses the input or output of a tool into text, changes, locations and terminals. Pure.
import type { FileChange } from './file-change';

export interface FileLocation {
  readonly path: string;
  readonly line?: number;
}

export interface ToolOutput {
  readonly text: string;
  /** Whether `text` is JSON that was formatted here. */
  readonly isData: boolean;
  readonly changes: readonly FileChange[];
  readonly locations: readonly FileLocation[];
  readonly terminals: readonly string[];
}

const EMPTY_OUTPUT: ToolOutput = { text: '', isData: false, changes: [], locations: [], terminals: [] };

/** Agents that report changes, locations and terminals do so beside the text; everything else is text or data. */
export function parseToolOutput(value: unknown): ToolOutput {
  if (value === undefined || value === null) return EMPTY_OUTPUT;
  if (typeof value === 'string') return { ...EMPTY_OUTPUT, text: value };
  if (!isRecord(value) || !hasOnlyParts(value)) return { ...EMPTY_OUTPUT, text: toJson(value), isData: true };
  const { text, raw, diffs, locations, terminals } = value;
  const content = text ?? raw;
  return {
    text: content === undefined ? '' : typeof content === 'string' ? content : toJson(content),
    isData: content !== undefined && typeof content !== 'string',
    changes: arrayOf(diffs).filter(isRecord).map(changeOf),
    locations: arrayOf(locations).filter(isRecord).map(locationOf),
    terminals: arrayOf(terminals).map(String),
  };
}

const PART_FIELDS = new Set(['text', 'raw', 'diffs', 'locations', 'terminals']);

function hasOnlyParts(value: Record<string, unknown>): boolean {
  const names = Object.keys(value);
  return names.length > 0 && names.every((name) => PART_FIELDS.has(name)) && (typeof value['text'] === 'string' || names.some((name) => Array.isArray(value[name])));
}

function changeOf({ path, oldText, newText }: Record<string, unknown>): FileChange {
  const before = typeof oldText === 'string' ? { before: oldText } : {};
  return { path: String(path ?? ''), ...before, after: typeof newText === 'string' ? newText : '' };
}

function locationOf({ path, line }: Record<string, unknown>): FileLocation {
  return { path: String(path ?? ''), ...(typeof line === 'number' ? { line } : {}) };
}

function toJson(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? '';
}

function arrayOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
