// Highlighting: the tokens of code, whole and growing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CodeHighlighter, languageOf } from '../src/highlight/highlighter';
import { languageOfPath } from '../src/highlight/language-of-path';
import { highlightLine } from '../src/highlight/lexer';
import type { HighlightedLine } from '../src/highlight/tokens';
import { SeededRandom } from './seeded-random';

/** `kind:text` for every token with a colour. */
function coloured(name: string, code: string): string[] {
  const highlighter = CodeHighlighter.of(name);
  assert.ok(highlighter, name);
  const lines = code.split('\n');
  highlighter.setLines(lines);
  return highlighter.slice(0, lines.length).flatMap(({ tokens }) => tokens.flatMap(({ kind, text }) => (kind ? [`${kind}:${text}`] : [])));
}

test('words, strings, numbers and comments of common languages are told apart', () => {
  assert.deepEqual(coloured('rust', 'pub fn max(a: u32) -> Option<u8> { "x\\"y".len() // end'), ['keyword:pub', 'keyword:fn', 'function:max', 'type:u32', 'type:Option', 'type:u8', 'string:"x\\"y"', 'function:len', 'comment:// end']);
  assert.deepEqual(coloured('ts', 'const x: number = await f(0xff, `a`);'), ['keyword:const', 'type:number', 'keyword:await', 'function:f', 'number:0xff', 'string:`a`']);
  assert.deepEqual(coloured('python', '@wraps\ndef f(self): return None  # no'), ['key:@wraps', 'keyword:def', 'function:f', 'keyword:return', 'literal:None', 'comment:# no']);
  assert.deepEqual(coloured('json', '{"a": [1, "b", true]}'), ['key:"a"', 'number:1', 'string:"b"', 'literal:true']);
  assert.deepEqual(coloured('yaml', 'name: "x" # y\n- key: 1'), ['key:name', 'string:"x"', 'comment:# y', 'key:key', 'number:1']);
  assert.deepEqual(coloured('bash', 'echo "$HOME" ${x} # y'), ['string:"$HOME"', 'variable:${x}', 'comment:# y']);
  assert.deepEqual(coloured('html', '<a href="x">text</a><!-- c -->'), ['tag:<a', 'key:href', 'string:"x"', 'tag:>', 'tag:</a>', 'comment:<!-- c -->']);
  assert.deepEqual(coloured('sql', "SELECT id FROM t WHERE a = 'b' -- c"), ['keyword:SELECT', 'keyword:FROM', 'keyword:WHERE', "string:'b'", 'comment:-- c']);
});

test('a comment or a string goes on over lines, and a lone quote does not', () => {
  assert.deepEqual(coloured('ts', 'a /* one\ntwo */ b'), ['comment:/* one', 'comment:two */']);
  assert.deepEqual(coloured('python', 'x = """a\nb"""\ny = 1'), ['string:"""a', 'string:b"""', 'number:1']);
  assert.deepEqual(coloured('rust', "it's fine\nlet x = 1;"), ["key:'s", 'keyword:let', 'number:1']);
  assert.deepEqual(coloured('c', '"never closed\nint x;'), ['type:int']);
});

test('the tokens of a line are its text, whatever it is', () => {
  const random = new SeededRandom(7);
  const pieces = ['"', "'", '`', '/*', '*/', '//', '#', '<a ', '/>', '\\', '$', '@', 'é', '😀', '0x', '1.5e3', 'let', ' ', '\t', '[[', ']]', '"""', ':', '\u202e', '<!--', '-->', '${', '}'];
  const names = ['rust', 'ts', 'python', 'json', 'yaml', 'bash', 'html', 'css', 'sql', 'toml', 'ruby', 'php', 'lua', 'makefile', 'dockerfile', 'ini', 'go', 'cpp', 'csharp', 'swift', 'elixir', 'haskell', 'graphql', 'terraform', 'java', 'kotlin'];
  for (let round = 0; round < 4_000; round += 1) {
    const language = languageOf(random.pick(names));
    assert.ok(language);
    const line = Array.from({ length: random.below(12) }, () => random.pick(pieces)).join('');
    const state = random.pick([undefined, 'c*/', 's"""', 's`', 'x']);
    const { tokens } = highlightLine(line, language, state);
    assert.equal(tokens.map(({ text }) => text).join(''), line);
  }
});

test('growing code has the same tokens as whole code', () => {
  const code = 'fn main() {\n    /* a\n    b */ let s = "x";\n    // end\n}\n'.repeat(20);
  const growing = CodeHighlighter.of('rust');
  assert.ok(growing);
  let last: readonly HighlightedLine[] = [];
  for (let end = 0; end <= code.length; end += 7) {
    const lines = code.slice(0, end).split('\n');
    growing.setLines(lines);
    last = growing.slice(0, lines.length);
  }
  const whole = CodeHighlighter.of('rust');
  assert.ok(whole);
  const lines = code.slice(0, code.length - (code.length % 7)).split('\n');
  whole.setLines(lines);
  assert.deepEqual(last, whole.slice(0, lines.length));
});

test('a long line and a long file take little time', () => {
  const rust = languageOf('rust');
  assert.ok(rust);
  const before = Date.now();
  for (const piece of ['"', '/*', 'x(', "'a", '  ', '\\']) highlightLine(piece.repeat(200_000), rust, undefined);
  const lines = Array.from({ length: 20_000 }, (_, index) => `    let value_${index} = compute("text", ${index}); // comment`);
  const highlighter = CodeHighlighter.of('rust');
  highlighter?.setLines(lines);
  highlighter?.slice(19_000, 20_000);
  assert.ok(Date.now() - before < 3_000, `${Date.now() - before} ms`);
});

test('a path tells its language', () => {
  assert.deepEqual(['src/a.rs', 'Dockerfile', 'x/Makefile', 'README', 'a.b.tsx'].map(languageOfPath), ['rs', 'dockerfile', 'makefile', '', 'tsx']);
  assert.equal(languageOf('constructor'), undefined);
});
