// Elements for what marked has read. Inert by construction: text becomes text nodes, and only the elements
// below exist. Nothing is loaded from elsewhere.
import type { Token, Tokens } from 'marked';
import type { ComponentChild, ComponentChildren } from 'preact';
import { text } from '../../text';
import { CodeBlock } from './code';
import { plain } from './entities';

/** What is deeper in each other is shown as it was written. */
const DEPTH = 60;
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*$/;
const ADDRESS = /^(?:https?:\/\/|mailto:)[^\s]/i;

/** Blocks: paragraphs, lists and the like. */
export function blocks(tokens: readonly Token[], depth = 0): ComponentChildren {
  return tokens.map((token) => (depth > DEPTH ? token.raw : block(token as Tokens.Generic, depth + 1)));
}

function block(token: Tokens.Generic, depth: number): ComponentChild {
  switch (token.type) {
    case 'space':
      return null;
    case 'heading':
      return heading(token as Tokens.Heading, depth);
    case 'paragraph':
      return <p>{inline(token.tokens, depth)}</p>;
    case 'text':
      return token.tokens ? inline(token.tokens, depth) : said(token as Tokens.Text);
    case 'code':
      return <CodeBlock language={(token.lang as string | undefined)?.split(/\s/)[0] ?? ''} code={String(token.text).replace(/\n$/, '')} />;
    case 'blockquote':
      return <blockquote>{blocks(token.tokens ?? [], depth)}</blockquote>;
    case 'list':
      return list(token as Tokens.List, depth);
    case 'table':
      return table(token as Tokens.Table, depth);
    case 'hr':
      return <hr />;
    case 'html':
      return <p class="raw">{String(token.text).trimEnd()}</p>;
    case 'def':
      return null;
    default:
      return span(token, depth);
  }
}

/** The page itself has the first two ranks. */
function heading({ depth: rank, tokens }: Tokens.Heading, depth: number): ComponentChild {
  const Rank = `h${Math.min(6, rank + 2)}` as 'h3';
  return <Rank>{inline(tokens, depth)}</Rank>;
}

function list({ ordered, start, items }: Tokens.List, depth: number): ComponentChild {
  const children = items.map((item) => <li class={item.task ? 'task' : undefined}>{blocks(item.tokens, depth)}</li>);
  return ordered ? <ol start={Number(start) === 1 ? undefined : Number(start)}>{children}</ol> : <ul>{children}</ul>;
}

function table({ header, rows }: Tokens.Table, depth: number): ComponentChild {
  const cell = ({ align, tokens, header: isHead }: Tokens.TableCell) => {
    const Cell = isHead ? 'th' : 'td';
    return <Cell class={align ? `to-${align}` : undefined}>{inline(tokens, depth)}</Cell>;
  };
  return (
    <div class="table-box" tabIndex={0} role="group" aria-label={text.transcript.table}>
      <table>
        <thead>
          <tr>{header.map(cell)}</tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>{row.map(cell)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What stands in a line. */
function inline(tokens: readonly Token[] | undefined, depth: number): ComponentChildren {
  return tokens?.map((token) => (depth > DEPTH ? token.raw : span(token as Tokens.Generic, depth + 1)));
}

function span(token: Tokens.Generic, depth: number): ComponentChild {
  switch (token.type) {
    case 'text':
      return token.tokens ? inline(token.tokens, depth) : said(token as Tokens.Text);
    case 'escape':
      return String(token.text);
    case 'strong':
      return <strong>{inline(token.tokens, depth)}</strong>;
    case 'em':
      return <em>{inline(token.tokens, depth)}</em>;
    case 'del':
      return <del>{inline(token.tokens, depth)}</del>;
    case 'codespan':
      return <code>{token.text}</code>;
    case 'br':
      return <br />;
    case 'checkbox':
      return <input type="checkbox" disabled checked={token.checked === true} aria-label={token.checked ? text.transcript.done : text.transcript.toDo} />;
    case 'link':
      return link(token as Tokens.Link, depth);
    case 'image':
      return image(token as Tokens.Image);
    default:
      return token.raw;
  }
}

function said({ text: words, escaped }: Tokens.Text): string {
  return escaped ? words : plain(words);
}

function link({ href, tokens, raw }: Tokens.Link, depth: number): ComponentChild {
  const to = plain(href);
  if (!ADDRESS.test(to)) return raw;
  return <Outward href={to}>{inline(tokens, depth)}</Outward>;
}

/** A picture that is elsewhere would tell its server who reads what, and when. */
function image({ href, text: alt, raw }: Tokens.Image): ComponentChild {
  if (PICTURE.test(href)) return <img src={href} alt={plain(alt)} />;
  const to = plain(href);
  if (!ADDRESS.test(to)) return raw;
  return <Outward href={to}>{text.transcript.picture(plain(alt))}</Outward>;
}

function Outward({ href, children }: { href: string; children: ComponentChildren }) {
  return (
    <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}
