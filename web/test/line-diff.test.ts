// Line diff: compares texts line by line.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diffLines, foldUnchanged } from '../src/session/transcript/line-diff';
import type { DiffLine } from '../src/session/transcript/line-diff';
import { SeededRandom } from './seeded-random';

const marks = (lines: readonly DiffLine[]): string => lines.map(({ kind, text }) => (kind === 'kept' ? ' ' : kind === 'added' ? '+' : '-') + text).join('\n');
const side = (lines: readonly DiffLine[], without: DiffLine['kind']): string[] => lines.filter(({ kind }) => kind !== without).map(({ text }) => text);

test('a changed line is removed and added', () => {
  assert.equal(marks(diffLines('a\nb\nc\n', 'a\nB\nc\n')), ' a\n-b\n+B\n c');
});

test('a new file is all added', () => {
  assert.equal(marks(diffLines('', 'x\ny\n')), '+x\n+y');
  assert.deepEqual(diffLines('x', 'x'), [{ kind: 'kept', text: 'x', oldNumber: 1, newNumber: 1 }]);
});

test('both texts can be read from the diff, and no more than needed is changed', () => {
  for (let seed = 0; seed < 400; seed += 1) {
    const random = new SeededRandom(seed);
    const oldLines = Array.from({ length: random.below(30) }, () => String(random.below(6)));
    const newLines = oldLines.flatMap((line) => (random.chance(0.15) ? [] : random.chance(0.15) ? [line, 'new'] : [line]));
    const lines = diffLines(oldLines.join('\n'), newLines.join('\n'));
    assert.deepEqual([side(lines, 'added'), side(lines, 'removed')], [oldLines, newLines], `seed ${seed}`);
    const edits = lines.filter(({ kind }) => kind !== 'kept').length;
    const added = newLines.filter((line) => line === 'new').length;
    assert.ok(edits <= 2 * added + oldLines.length, `seed ${seed}`);
  }
});

test('lines have their numbers in both texts', () => {
  assert.deepEqual(diffLines('a\nb', 'b\nc').map(({ oldNumber, newNumber }) => [oldNumber, newNumber]), [[1, undefined], [2, 1], [undefined, 2]]);
});

test('comparing two large, unrelated texts is fast', () => {
  const text = (word: string) => Array.from({ length: 20_000 }, (_, index) => `${word}${index}`).join('\n');
  const before = Date.now();
  assert.equal(diffLines(text('a'), text('b')).length, 40_000);
  assert.ok(Date.now() - before < 2_000);
});

test('unchanged lines are folded, except for some context', () => {
  const lines = Array.from({ length: 40 }, (_, index) => `line ${index}`);
  const parts = foldUnchanged(diffLines(lines.join('\n'), lines.map((line, index) => (index === 20 ? 'x' : line)).join('\n')));
  assert.deepEqual(parts.map(({ isFolded, lines: shown }) => [isFolded, shown.length]), [[true, 17], [false, 8], [true, 16]]);
});
