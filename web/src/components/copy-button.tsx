// Copy button: copies a text and shows whether it worked.
import { useEffect, useState } from 'preact/hooks';
import { text } from '../text';
import { Icon } from './icon';
import { showToast } from './toast';

const SHOWN_MS = 2_000;

/** `content` is read on click. `label`: what is copied, for screen readers. */
export function CopyButton({ content, label = text.common.copy }: { content: () => string; label?: string }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const onClick = async () => {
    if (await copyText(content())) setCopied(true);
    else showToast(text.transcript.copyFailed, 'error');
  };
  return (
    <button type="button" class="quiet-button" aria-label={isCopied ? text.common.copied : label} onClick={() => void onClick()}>
      <Icon name={isCopied ? 'check' : 'copy'} />
      <span aria-live="polite">{isCopied ? text.common.copied : text.common.copy}</span>
    </button>
  );
}

/** Whether it was copied. The clipboard API needs https; the fallback works without. */
async function copyText(content: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(content);
    return true;
  } catch {
    return copyBySelection(content);
  }
}

function copyBySelection(content: string): boolean {
  const before = document.activeElement;
  const field = document.createElement('textarea');
  field.value = content;
  field.readOnly = true;
  field.className = 'visually-hidden';
  document.body.append(field);
  field.select();
  try {
    return document.execCommand('copy');
  } catch {
    return false;
  } finally {
    field.remove();
    if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  }
}
