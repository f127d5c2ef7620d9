// Toast: short messages at the bottom of the page.
import { signal } from '@preact/signals';
import { text } from '../text';
import { IconButton } from './icon';

interface Toast {
  id: number;
  message: string;
  kind: 'info' | 'error';
}

const SHOWN_MS = 6_000;
const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

/** Shows a message for a few seconds; an error stays until it is closed. */
export function showToast(message: string, kind: Toast['kind'] = 'info'): void {
  const toast = { id: (lastId += 1), message, kind };
  toasts.value = [...toasts.value.filter((shown) => shown.message !== message).slice(-2), toast];
  if (kind === 'info') setTimeout(() => removeToast(toast.id), SHOWN_MS);
}

function removeToast(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** Renders the toasts. Mount once. */
export function Toasts() {
  return (
    <div class="toasts" role="status" data-part="toasts">
      {toasts.value.map(({ id, message, kind }) => (
        <div class={`toast ${kind}`} key={id}>
          <span>{message}</span>
          <IconButton name="close" label={text.common.close} onClick={() => removeToast(id)} />
        </div>
      ))}
    </div>
  );
}
