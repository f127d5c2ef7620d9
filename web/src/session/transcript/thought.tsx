// Thought: the agent's reasoning, folded.
import { useState } from 'preact/hooks';
import { Icon } from '../../components/icon';
import { text } from '../../text';
import { CodeText } from '../markdown/code-block';
import type { ThoughtEntry } from '../timeline';

/** `isLive`: the agent is thinking now. */
export function Thought({ entry: { text: content, at, until }, isLive }: { entry: ThoughtEntry; isLive: boolean }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="thought" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="bulb" />
        <span>{isLive ? text.transcript.thinking : label(at, until)}</span>
      </summary>
      {isOpen && (
        <p class="thought-text">
          <CodeText code={content} />
        </p>
      )}
    </details>
  );
}

function label(at: string, until: string): string {
  const seconds = Math.round((Date.parse(until) - Date.parse(at)) / 1000);
  return seconds > 0 ? text.transcript.thoughtFor(seconds) : text.transcript.thought;
}
