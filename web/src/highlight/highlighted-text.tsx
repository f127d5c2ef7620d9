// Highlighted text: code in blocks of lines, each coloured once it is visible.
import { Component } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { showInvisible } from '../components/visible-text';
import { highlighter, loadHighlighter } from './lazy-highlighter';
import type { CodeHighlighter } from './highlighter';
import type { HighlightedLine } from './tokens';

/** Lines per block. Blocks that are complete never change, so that growing code costs only its end. */
const BLOCK_LINES = 80;
/** Longer code is plain. */
const MAX_CHARS = 1_000_000;
/** With more blocks than this, those out of view are not laid out. */
const MAX_LAID_OUT_BLOCKS = 12;

/** `language`: a name such as `ts` or a file extension. */
export function HighlightedText({ code, language }: { code: string; language: string }) {
  useEffect(loadHighlighter, []);
  const loaded = highlighter.value;
  const lexer = useMemo(() => (code.length <= MAX_CHARS ? loaded?.CodeHighlighter.of(language) : undefined), [loaded, language, code.length > MAX_CHARS]);
  const lines = code.split('\n');
  lexer?.setLines(lines);
  const blocks = [];
  const isLong = lines.length > MAX_LAID_OUT_BLOCKS * BLOCK_LINES;
  for (let from = 0; from < lines.length; from += BLOCK_LINES) {
    const text = lines.slice(from, from + BLOCK_LINES).join('\n');
    blocks.push(<CodeBlockPart key={from} text={text} from={from} lexer={lexer} isLong={isLong} />);
  }
  return <>{blocks}</>;
}

interface PartProps {
  text: string;
  from: number;
  lexer: CodeHighlighter | undefined;
  isLong: boolean;
}

/** Rerenders only if its own text has changed. */
class CodeBlockPart extends Component<PartProps> {
  override shouldComponentUpdate({ text, lexer, isLong }: PartProps): boolean {
    return text !== this.props.text || lexer !== this.props.lexer || isLong !== this.props.isLong;
  }

  render() {
    const { text, from, lexer, isLong } = this.props;
    const name = isLong ? 'code-part skipped' : 'code-part';
    return lexer ? <VisiblePart text={text} from={from} lexer={lexer} name={name} /> : <span class={name}>{showInvisible(text)}</span>;
  }
}

function VisiblePart({ text, from, lexer, name }: { text: string; from: number; lexer: CodeHighlighter; name: string }) {
  const part = useRef<HTMLSpanElement>(null);
  const isVisible = useWasVisible(part);
  const lines = isVisible ? lexer.slice(from, from + text.split('\n').length) : undefined;
  return (
    <span ref={part} class={name}>
      {lines ? lines.map((line, index) => <TokenLine key={index} line={line} end={index < lines.length - 1 ? '\n' : ''} />) : showInvisible(text)}
    </span>
  );
}

/** One line as elements. */
export function TokenLine({ line, end = '' }: { line: HighlightedLine; end?: string }) {
  return (
    <>
      {line.tokens.map(({ text, kind }, index) => (kind ? <span key={index} class={`tk-${kind}`}>{showInvisible(text)}</span> : showInvisible(text)))}
      {end}
    </>
  );
}

/** True from the first time that an element is near the window. */
function useWasVisible(element: { current: Element | null }): boolean {
  const [isVisible, setVisible] = useState(false);
  useEffect(() => {
    const target = element.current;
    if (isVisible || !target) return undefined;
    onceVisible.set(target, () => setVisible(true));
    observer ??= new IntersectionObserver(callVisible, { rootMargin: '300px' });
    observer.observe(target);
    return () => {
      observer?.unobserve(target);
      onceVisible.delete(target);
    };
  }, [isVisible]);
  return isVisible;
}

const onceVisible = new Map<Element, () => void>();
/** One for all blocks: long code has hundreds. */
let observer: IntersectionObserver | undefined;

function callVisible(entries: readonly IntersectionObserverEntry[]): void {
  for (const { isIntersecting, target } of entries) if (isIntersecting) onceVisible.get(target)?.();
}
