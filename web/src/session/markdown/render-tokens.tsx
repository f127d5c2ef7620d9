// Render tokens: elements for the tokens of marked. Inert by construction: text becomes text nodes, only the
// elements below exist, and nothing is loaded from elsewhere.
import type { Token, Tokens } from 'marked';
import type { ComponentChild, ComponentChildren } from 'preact';
import { text } from '../../text';
import { CodeBlock } from './code-block';
import { decodeEntities } from './html-entities';

/** Deeper nesting is shown as source text. */
const MAX_DEPTH = 60;
const EMBEDDED_IMAGE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*$/;
const EXTERNAL_URL = /^(?:https?:\/\/|mailto:)[^\s]/i;

/** Block elements: paragraphs, lists and the like. */
export function renderBlocks(tokens: readonly Token[], depth = 0): ComponentChildren {
  return tokens.map((token) => (depth > MAX_DEPTH ? token.raw : renderBlock(token as Tokens.Generic, depth + 1)));
}

function renderBlock(token: Tokens.Generic, depth: number): ComponentChild {
  switch (token.type) {
    case 'space':
      return null;
    case 'heading':
      return renderHeading(token as Tokens.Heading, depth);
    case 'paragraph':
      return <p>{renderInline(token.tokens, depth)}</p>;
    case 'text':
      return token.tokens ? renderInline(token.tokens, depth) : textOf(token as Tokens.Text);
    case 'code':
      return <CodeBlock language={(token.lang as string | undefined)?.split(/\s/)[0] ?? ''} code={String(token.text).replace(/\n$/, '')} />;
    case 'blockquote':
      return <blockquote>{renderBlocks(token.tokens ?? [], depth)}</blockquote>;
    case 'list':
      return renderList(token as Tokens.List, depth);
    case 'table':
      return renderTable(token as Tokens.Table, depth);
    case 'hr':
      return <hr />;
    case 'html':
      return <p class="raw">{String(token.text).trimEnd()}</p>;
    case 'def':
      return null;
    default:
      return renderSpan(token, depth);
  }
}

/** The page itself uses the first two heading levels. */
function renderHeading({ depth: rank, tokens }: Tokens.Heading, depth: number): ComponentChild {
  const Rank = `h${Math.min(6, rank + 2)}` as 'h3';
  return <Rank>{renderInline(tokens, depth)}</Rank>;
}

function renderList({ ordered, start, items }: Tokens.List, depth: number): ComponentChild {
  const children = items.map((item) => <li class={item.task ? 'task' : undefined}>{renderBlocks(item.tokens, depth)}</li>);
  return ordered ? <ol start={Number(start) === 1 ? undefined : Number(start)}>{children}</ol> : <ul>{children}</ul>;
}

function renderTable({ header, rows }: Tokens.Table, depth: number): ComponentChild {
  const cell = ({ align, tokens, header: isHead }: Tokens.TableCell) => {
    const Cell = isHead ? 'th' : 'td';
    return <Cell class={align ? `to-${align}` : undefined}>{renderInline(tokens, depth)}</Cell>;
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

/** Inline elements. */
function renderInline(tokens: readonly Token[] | undefined, depth: number): ComponentChildren {
  return tokens?.map((token) => (depth > MAX_DEPTH ? token.raw : renderSpan(token as Tokens.Generic, depth + 1)));
}

function renderSpan(token: Tokens.Generic, depth: number): ComponentChild {
  switch (token.type) {
    case 'text':
      return token.tokens ? renderInline(token.tokens, depth) : textOf(token as Tokens.Text);
    case 'escape':
      return String(token.text);
    case 'strong':
      return <strong>{renderInline(token.tokens, depth)}</strong>;
    case 'em':
      return <em>{renderInline(token.tokens, depth)}</em>;
    case 'del':
      return <del>{renderInline(token.tokens, depth)}</del>;
    case 'codespan':
      return <code>{token.text}</code>;
    case 'br':
      return <br />;
    case 'checkbox':
      return <input type="checkbox" disabled checked={token.checked === true} aria-label={token.checked ? text.transcript.done : text.transcript.toDo} />;
    case 'link':
      return renderLink(token as Tokens.Link, depth);
    case 'image':
      return renderImage(token as Tokens.Image);
    default:
      return token.raw;
  }
}

function textOf({ text: content, escaped }: Tokens.Text): string {
  return escaped ? content : decodeEntities(content);
}

function renderLink({ href, tokens, raw }: Tokens.Link, depth: number): ComponentChild {
  const to = decodeEntities(href);
  if (!EXTERNAL_URL.test(to)) return raw;
  return <ExternalLink href={to}>{renderInline(tokens, depth)}</ExternalLink>;
}

/** External images are not loaded: their server would learn who reads what, and when. */
function renderImage({ href, text: alt, raw }: Tokens.Image): ComponentChild {
  if (EMBEDDED_IMAGE.test(href)) return <img src={href} alt={decodeEntities(alt)} />;
  const to = decodeEntities(href);
  if (!EXTERNAL_URL.test(to)) return raw;
  return <ExternalLink href={to}>{text.transcript.picture(decodeEntities(alt))}</ExternalLink>;
}

function ExternalLink({ href, children }: { href: string; children: ComponentChildren }) {
  return (
    <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}
