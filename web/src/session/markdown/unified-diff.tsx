// Unified diff: colours the output of `diff -u`.
import { showInvisible } from '../../components/visible-text';

/** Longer diffs have coloured text only. */
export const MAX_COLOURED_DIFF_CHARS = 64 * 1024;
const HUNK = /^@@ .*@@/;

/** Whether a text looks like a unified diff. */
export function isUnifiedDiff(content: string): boolean {
  const start = content.slice(0, 4_000);
  return /^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@/m.test(start) && /^(?:--- |\+\+\+ |diff )/m.test(start);
}

/** The line prefixes carry the same information without colours. */
export function UnifiedDiff({ diff }: { diff: string }) {
  return (
    <>
      {diff.split('\n').map((line, index) => (
        <span key={index} class={`patch-line ${lineKind(line)}`}>
          {showInvisible(line) || ' '}
        </span>
      ))}
    </>
  );
}

function lineKind(line: string): string {
  if (HUNK.test(line)) return 'place';
  if (/^(?:diff |index |--- |\+\+\+ )/.test(line)) return 'about';
  if (line.startsWith('+')) return 'added';
  return line.startsWith('-') ? 'removed' : '';
}
