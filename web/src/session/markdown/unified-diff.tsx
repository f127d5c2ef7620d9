// Changes that somebody has written down line by line, as `diff -u` does.
import { plainly } from '../../parts/plainly';

const HUNK = /^@@ .*@@/;

/** Does a text look like that? */
export function isDiff(words: string): boolean {
  const start = words.slice(0, 4_000);
  return /^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@/m.test(start) && /^(?:--- |\+\+\+ |diff )/m.test(start);
}

/** Coloured. The marks at the beginning of each line say the same without colours. */
export function PatchText({ patch }: { patch: string }) {
  return (
    <>
      {patch.split('\n').map((line, place) => (
        <span key={place} class={`patch-line ${kindOf(line)}`}>
          {plainly(line) || ' '}
        </span>
      ))}
    </>
  );
}

function kindOf(line: string): string {
  if (HUNK.test(line)) return 'place';
  if (/^(?:diff |index |--- |\+\+\+ )/.test(line)) return 'about';
  if (line.startsWith('+')) return 'added';
  return line.startsWith('-') ? 'removed' : '';
}
