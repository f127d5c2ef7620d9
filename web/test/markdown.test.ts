// Markdown: rendering, safety, and independence of how the text arrives.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LinkReferences } from '../src/session/markdown/link-references';
import { renderSegment } from '../src/session/markdown/render-segment';
import { Segmenter } from '../src/session/markdown/segmenter';
import { html } from './render-html';
import { SeededRandom } from './seeded-random';

/** Renders a text that arrives in these parts. */
function render(...parts: string[]): string {
  const segmenter = new Segmenter();
  const references = new LinkReferences();
  let text = '';
  let last = '';
  for (const part of parts) {
    text += part;
    const list = segmenter.segments(text);
    const links = references.linksBySegment(list);
    last = list.map((segment) => html(renderSegment(segment, links(segment)))).join('');
  }
  return last;
}

test('common markdown is rendered', () => {
  assert.equal(render('# A *b*'), '<h3>A <em>b</em></h3>');
  assert.equal(render('a **b** `c` ~~d~~'), '<p>a <strong>b</strong> <code>c</code> <del>d</del></p>');
  assert.equal(render('1. a\n2. b'), '<ol><li>a</li><li>b</li></ol>');
  assert.equal(render('a &amp; b &#39;c&#39; &unknown;'), "<p>a &amp; b 'c' &amp;unknown;</p>");
  assert.match(render('- [x] a\n- [ ] b'), /<li class="task"><input type="checkbox" disabled="true" checked="true"/);
  assert.match(render('| a | b |\n|--|:-:|\n| 1 | 2 |'), /<td class="to-center">2<\/td>/);
});

test('code keeps its language and its lines', () => {
  assert.equal(render('```ts\nlet a;\n\nlet b;\n```\nafter'), '<CodeBlock language="ts" code="let a;\n\nlet b;"></CodeBlock><p>after</p>');
  assert.equal(render('~~~\n```\n~~~'), '<CodeBlock language="" code="```"></CodeBlock>');
  assert.equal(render('- a\n\n  ```js\n  x\n\n  y\n  ```\n- b').includes('code="x\n\ny"'), true);
});

test('raw HTML stays text', () => {
  const hostile = ['<script>alert(1)</script>', 'a <img src=x onerror=alert(1)> b', '<div onclick="x">\n\n**b**\n</div>', '<!-- c -->', '<a href="javascript:x">y</a>'];
  for (const words of hostile) assert.doesNotMatch(render(words), /<(?:script|img|div|a)[ >]/, words);
});

test('links lead only to http, https and mailto', () => {
  assert.equal(render('[a](https://x.org/?a=1&b=2)'), '<p><a href="https://x.org/?a=1&amp;b=2" title="https://x.org/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer nofollow">a</a></p>');
  for (const to of ['javascript:alert(1)', 'JaVaScRiPt:x', 'data:text/html,x', 'vbscript:x', '//x.org', '/api', '&#106;avascript:x', 'java&#10;script:x', 'file:///etc', 'blob:x', ' javascript:x', '<javascript:x>']) {
    assert.doesNotMatch(render(`[a](${to}) and ![b](${to})`), /<(?:a|img)[ >]/, to);
  }
});

test('external images are not loaded', () => {
  assert.doesNotMatch(render('![cat](https://x.org/cat.png)'), /<img/);
  assert.match(render('![cat](https://x.org/cat.png)'), /not loaded: cat/);
  assert.match(render('![dot](data:image/png;base64,iVBORw0KGgo=)'), /<img src="data:image\/png;base64,iVBORw0KGgo=" alt="dot">/);
  assert.doesNotMatch(render('![x](data:image/svg+xml;base64,PHN2Zz4=)'), /<img/);
});

test('a link reference may be defined in another segment', () => {
  assert.match(render('see [a][1] and [2]\n\ntext\n\n[1]: https://x.org\n[2]: https://y.org\n'), /href="https:\/\/x.org".*href="https:\/\/y.org"/);
});

const SCRAPS = [
  'word ', 'more words', '\n', '\n', '\n\n', '# ', '## Head', '- ', '- item', '* ', '1. ', '2. two', '  ', '    ', '\t', '> ', '> quote', '```', '```js\n', '~~~', '`', '**', '*', '_', '[', ']', '](', ')',
  '[a](http://x.y)', '[1]', '[1]: http://z.z\n', '![p](http://q.r)', '| a | b |\n', '|---|---|\n', '| 1 | 2 |', '---', '===', '<div>', '</div>', '<!--', '-->', '<b>', '&amp;', '\\', '- [ ] ', '- [x] t', 'http://auto.link ', '\r\n', 'é', '😀', '  \n', '+ x', '10) ten',
];

test('the result does not depend on how the text was chunked', () => {
  for (let seed = 0; seed < 600; seed += 1) {
    const random = new SeededRandom(seed);
    const text = Array.from({ length: 1 + random.below(60) }, () => random.pick(SCRAPS)).join('');
    const parts: string[] = [];
    for (let from = 0; from < text.length; ) {
      const to = from + 1 + random.below(random.chance(0.5) ? 3 : 30);
      parts.push(text.slice(from, to));
      from = to;
    }
    assert.equal(render(...parts), render(text), `seed ${seed}: ${JSON.stringify(text)}`);
  }
});

test('finished segments stay the same objects', () => {
  const segmenter = new Segmenter();
  const before = segmenter.segments('one\n\ntwo\n\nthree\n');
  const after = segmenter.segments('one\n\ntwo\n\nthree\nand more\n\nfour');
  assert.deepEqual([before[0] === after[0], before[1] === after[1], after.length], [true, true, 4]);
});

test('hostile text is rendered, and quickly', () => {
  const repeats = 20_000;
  const hostile = ['>', '[', '![', '(', '*', '_a ', '**a', 'a*', '`', '<', '<a ', '- ', '> - ', '&', '\\', '|', '#', '~~a', 'http://a.', 'a@b.', 'a.b-c_d+', '[a](', '[a][', ']', '<!--', '1. ', '\t', '"', '[x]: ', '![](data:image/png;base64,'];
  for (const scrap of hostile) {
    const before = Date.now();
    assert.ok(render(scrap.repeat(repeats)).length >= 0);
    assert.ok(render(`${scrap}\n`.repeat(repeats / 4)).length >= 0);
    assert.ok(Date.now() - before < 3_000, `${scrap} took ${Date.now() - before} ms`);
  }
  const nested = Array.from({ length: 300 }, (_, depth) => `${' '.repeat(depth * 2)}- a`).join('\n');
  assert.match(render(nested), /a/);
});

test('text that is too long to parse is shown in full', () => {
  const words = 'word '.repeat(30_000);
  assert.ok(render(words).includes('word word'));
});
