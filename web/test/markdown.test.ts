import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pieceVnodes } from '../src/session/markdown/piece';
import { Pieces } from '../src/session/markdown/pieces';
import { References } from '../src/session/markdown/references';
import { Chance } from './chance';
import { html } from './html';

/** A text as the page shows it, heard in these pieces. */
function shown(...parts: string[]): string {
  const pieces = new Pieces();
  const references = new References();
  let text = '';
  let last = '';
  for (const part of parts) {
    text += part;
    const list = pieces.of(text);
    const links = references.of(list);
    last = list.map((piece) => html(pieceVnodes(piece, links(piece)))).join('');
  }
  return last;
}

test('what people write is shown as they mean it', () => {
  assert.equal(shown('# A *b*'), '<h3>A <em>b</em></h3>');
  assert.equal(shown('a **b** `c` ~~d~~'), '<p>a <strong>b</strong> <code>c</code> <del>d</del></p>');
  assert.equal(shown('1. a\n2. b'), '<ol><li>a</li><li>b</li></ol>');
  assert.equal(shown('a &amp; b &#39;c&#39; &unknown;'), "<p>a &amp; b 'c' &amp;unknown;</p>");
  assert.match(shown('- [x] a\n- [ ] b'), /<li class="task"><input type="checkbox" disabled="true" checked="true"/);
  assert.match(shown('| a | b |\n|--|:-:|\n| 1 | 2 |'), /<td class="to-center">2<\/td>/);
});

test('code keeps its language and its lines', () => {
  assert.equal(shown('```ts\nlet a;\n\nlet b;\n```\nafter'), '<CodeBlock language="ts" code="let a;\n\nlet b;"></CodeBlock><p>after</p>');
  assert.equal(shown('~~~\n```\n~~~'), '<CodeBlock language="" code="```"></CodeBlock>');
  assert.equal(shown('- a\n\n  ```js\n  x\n\n  y\n  ```\n- b').includes('code="x\n\ny"'), true);
});

test('raw HTML is only ever text', () => {
  const hostile = ['<script>alert(1)</script>', 'a <img src=x onerror=alert(1)> b', '<div onclick="x">\n\n**b**\n</div>', '<!-- c -->', '<a href="javascript:x">y</a>'];
  for (const words of hostile) assert.doesNotMatch(shown(words), /<(?:script|img|div|a)[ >]/, words);
});

test('links lead to the web or to a mailbox, and nowhere else', () => {
  assert.equal(shown('[a](https://x.org/?a=1&b=2)'), '<p><a href="https://x.org/?a=1&amp;b=2" title="https://x.org/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer nofollow">a</a></p>');
  for (const to of ['javascript:alert(1)', 'JaVaScRiPt:x', 'data:text/html,x', 'vbscript:x', '//x.org', '/api', '&#106;avascript:x', 'java&#10;script:x', 'file:///etc', 'blob:x', ' javascript:x', '<javascript:x>']) {
    assert.doesNotMatch(shown(`[a](${to}) and ![b](${to})`), /<(?:a|img)[ >]/, to);
  }
});

test('pictures from elsewhere are not loaded', () => {
  assert.doesNotMatch(shown('![cat](https://x.org/cat.png)'), /<img/);
  assert.match(shown('![cat](https://x.org/cat.png)'), /not loaded: cat/);
  assert.match(shown('![dot](data:image/png;base64,iVBORw0KGgo=)'), /<img src="data:image\/png;base64,iVBORw0KGgo=" alt="dot">/);
  assert.doesNotMatch(shown('![x](data:image/svg+xml;base64,PHN2Zz4=)'), /<img/);
});

test('an address may be written down elsewhere', () => {
  assert.match(shown('see [a][1] and [2]\n\ntext\n\n[1]: https://x.org\n[2]: https://y.org\n'), /href="https:\/\/x.org".*href="https:\/\/y.org"/);
});

const SCRAPS = [
  'word ', 'more words', '\n', '\n', '\n\n', '# ', '## Head', '- ', '- item', '* ', '1. ', '2. two', '  ', '    ', '\t', '> ', '> quote', '```', '```js\n', '~~~', '`', '**', '*', '_', '[', ']', '](', ')',
  '[a](http://x.y)', '[1]', '[1]: http://z.z\n', '![p](http://q.r)', '| a | b |\n', '|---|---|\n', '| 1 | 2 |', '---', '===', '<div>', '</div>', '<!--', '-->', '<b>', '&amp;', '\\', '- [ ] ', '- [x] t', 'http://auto.link ', '\r\n', 'é', '😀', '  \n', '+ x', '10) ten',
];

test('it does not matter how a text was cut', () => {
  for (let seed = 0; seed < 600; seed += 1) {
    const chance = new Chance(seed);
    const text = Array.from({ length: 1 + chance.below(60) }, () => chance.one(SCRAPS)).join('');
    const parts: string[] = [];
    for (let from = 0; from < text.length; ) {
      const to = from + 1 + chance.below(chance.is(0.5) ? 3 : 30);
      parts.push(text.slice(from, to));
      from = to;
    }
    assert.equal(shown(...parts), shown(text), `seed ${seed}: ${JSON.stringify(text)}`);
  }
});

test('pieces that are done stay the same objects', () => {
  const pieces = new Pieces();
  const before = pieces.of('one\n\ntwo\n\nthree\n');
  const after = pieces.of('one\n\ntwo\n\nthree\nand more\n\nfour');
  assert.deepEqual([before[0] === after[0], before[1] === after[1], after.length], [true, true, 4]);
});

test('hostile texts are shown, and quickly', () => {
  const many = 20_000;
  const hostile = ['>', '[', '![', '(', '*', '_a ', '**a', 'a*', '`', '<', '<a ', '- ', '> - ', '&', '\\', '|', '#', '~~a', 'http://a.', 'a@b.', 'a.b-c_d+', '[a](', '[a][', ']', '<!--', '1. ', '\t', '"', '[x]: ', '![](data:image/png;base64,'];
  for (const scrap of hostile) {
    const before = Date.now();
    assert.ok(shown(scrap.repeat(many)).length >= 0);
    assert.ok(shown(`${scrap}\n`.repeat(many / 4)).length >= 0);
    assert.ok(Date.now() - before < 3_000, `${scrap} took ${Date.now() - before} ms`);
  }
  const nested = Array.from({ length: 300 }, (_, depth) => `${' '.repeat(depth * 2)}- a`).join('\n');
  assert.match(shown(nested), /a/);
});

test('nothing of a text is lost that is too long to be read', () => {
  const words = 'word '.repeat(30_000);
  assert.ok(shown(words).includes('word word'));
});
