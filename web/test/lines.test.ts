import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compare, fold } from '../src/session/transcript/lines';
import type { Line } from '../src/session/transcript/lines';
import { Chance } from './chance';

const marks = (lines: readonly Line[]): string => lines.map(({ is, text }) => (is === 'kept' ? ' ' : is === 'added' ? '+' : '-') + text).join('\n');
const side = (lines: readonly Line[], without: Line['is']): string[] => lines.filter(({ is }) => is !== without).map(({ text }) => text);

test('a changed line is removed and added', () => {
  assert.equal(marks(compare('a\nb\nc\n', 'a\nB\nc\n')), ' a\n-b\n+B\n c');
});

test('a new file is all added', () => {
  assert.equal(marks(compare('', 'x\ny\n')), '+x\n+y');
  assert.deepEqual(compare('x', 'x'), [{ is: 'kept', text: 'x', old: 1, now: 1 }]);
});

test('both texts can be read from what was compared, and no more than needed is changed', () => {
  for (let seed = 0; seed < 400; seed += 1) {
    const chance = new Chance(seed);
    const old = Array.from({ length: chance.below(30) }, () => String(chance.below(6)));
    const now = old.flatMap((line) => (chance.is(0.15) ? [] : chance.is(0.15) ? [line, 'new'] : [line]));
    const lines = compare(old.join('\n'), now.join('\n'));
    assert.deepEqual([side(lines, 'added'), side(lines, 'removed')], [old, now], `seed ${seed}`);
    const edits = lines.filter(({ is }) => is !== 'kept').length;
    const made = now.filter((line) => line === 'new').length;
    assert.ok(edits <= 2 * made + old.length, `seed ${seed}`);
  }
});

test('lines have their numbers in both texts', () => {
  assert.deepEqual(compare('a\nb', 'b\nc').map(({ old, now }) => [old, now]), [[1, undefined], [2, 1], [undefined, 2]]);
});

test('two large texts with nothing in common do not take long', () => {
  const text = (word: string) => Array.from({ length: 20_000 }, (_, place) => `${word}${place}`).join('\n');
  const before = Date.now();
  assert.equal(compare(text('a'), text('b')).length, 40_000);
  assert.ok(Date.now() - before < 2_000);
});

test('what did not change is folded, but for a few lines around', () => {
  const lines = Array.from({ length: 40 }, (_, place) => `line ${place}`);
  const parts = fold(compare(lines.join('\n'), lines.map((line, place) => (place === 20 ? 'x' : line)).join('\n')));
  assert.deepEqual(parts.map(({ isFolded, lines: shown }) => [isFolded, shown.length]), [[true, 17], [false, 8], [true, 16]]);
});
