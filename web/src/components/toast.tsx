// Short words about what has just happened, at the foot of the page.
import { signal } from '@preact/signals';
import { text } from '../text';
import { IconButton } from './icon';

interface Toast {
  id: number;
  words: string;
  kind: 'info' | 'error';
}

const SHOWN_MS = 6_000;
const toasts = signal<readonly Toast[]>([]);
let last = 0;

/** Says something for a few seconds; an error stays until it is closed. */
export function say(words: string, kind: Toast['kind'] = 'info'): void {
  const toast = { id: (last += 1), words, kind };
  toasts.value = [...toasts.value.filter((shown) => shown.words !== words).slice(-2), toast];
  if (kind === 'info') setTimeout(() => drop(toast.id), SHOWN_MS);
}

function drop(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** Where they are shown. Once in the page. */
export function Toasts() {
  return (
    <div class="toasts" role="status" data-part="toasts">
      {toasts.value.map(({ id, words, kind }) => (
        <div class={`toast ${kind}`} key={id}>
          <span>{words}</span>
          <IconButton name="close" label={text.common.close} onClick={() => drop(id)} />
        </div>
      ))}
    </div>
  );
}
