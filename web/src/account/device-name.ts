// Device name: reads a readable name from a user agent.
import type { Http } from '@switchboard/client';
import { text } from '../text';

// The order matters: most browsers also claim to be the ones further down.
const PROGRAMS: readonly [RegExp, string][] = [
  [/Edg/, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox|FxiOS/, 'Firefox'],
  [/Chrom|CriOS/, 'Chrome'],
  [/Safari/, 'Safari'],
  [/^curl/, 'curl'],
];
const SYSTEMS: readonly [RegExp, string][] = [
  [/iPhone|iPad/, 'iOS'],
  [/Android/, 'Android'],
  [/Windows/, 'Windows'],
  [/Mac OS/, 'macOS'],
  [/Linux/, 'Linux'],
];
const MAX_CHARS = 40;

/** Such as `Firefox on Windows`. */
export function deviceName({ kind, userAgent }: Pick<Http.LoginBody, 'kind' | 'userAgent'>): string {
  if (kind === 'token') return text.account.commandLine;
  const agent = userAgent ?? '';
  const find = (names: typeof PROGRAMS) => names.find(([pattern]) => pattern.test(agent))?.[1];
  const program = find(PROGRAMS) ?? (agent.slice(0, MAX_CHARS) || text.account.unknownProgram);
  const system = find(SYSTEMS);
  return system ? text.account.programOn(program, system) : program;
}
