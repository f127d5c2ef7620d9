// Render HTML: elements as a string, to compare them. Stateful components are written as an element with
// their props.
import { Fragment } from 'preact';

interface Node {
  type: unknown;
  props: Record<string, unknown>;
}

export function html(node: unknown): string {
  if (node === null || node === undefined || typeof node === 'boolean') return '';
  if (typeof node === 'string' || typeof node === 'number') return escape(String(node));
  if (Array.isArray(node)) return node.map(html).join('');
  const { type, props } = node as Node;
  if (type === Fragment) return html(props['children']);
  if (typeof type === 'function' && type.name === 'ExternalLink') return html((type as (props: unknown) => unknown)(props));
  const name = typeof type === 'function' ? type.name : String(type);
  const attributes = Object.entries(props).filter(([key, value]) => key !== 'children' && value !== undefined && value !== false);
  return `<${name}${attributes.map(([key, value]) => ` ${key}="${escape(String(value))}"`).join('')}>${html(props['children'])}</${name}>`;
}

function escape(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');
}
