// What a device is called, from what its browser says about itself.
import type { Http } from '@switchboard/client';
import { text } from '../text';

// The order matters: most browsers also name those that come later here.
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
const MOST_CHARS = 40;

/** Like `Firefox on Windows`. */
export function nameOfDevice({ kind, userAgent }: Pick<Http.LoginBody, 'kind' | 'userAgent'>): string {
  if (kind === 'token') return text.account.commandLine;
  const said = userAgent ?? '';
  const known = (names: typeof PROGRAMS) => names.find(([pattern]) => pattern.test(said))?.[1];
  const program = known(PROGRAMS) ?? (said.slice(0, MOST_CHARS) || text.account.unknownProgram);
  const system = known(SYSTEMS);
  return system ? text.account.programOn(program, system) : program;
}
