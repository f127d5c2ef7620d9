// A button that copies, and says whether it did.
import { useEffect, useState } from 'preact/hooks';
import { Icon } from '../../parts/icon';
import { say } from '../../parts/toast';
import { text } from '../../text';

const SHOWN_MS = 2_000;

/** `what` is asked for when it is needed. `label`: what is copied, for ears. */
export function CopyButton({ what, label = text.common.copy }: { what: () => string; label?: string }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const onClick = async () => {
    if (await copy(what())) setCopied(true);
    else say(text.transcript.copyFailed, 'error');
  };
  return (
    <button type="button" class="quiet-button" aria-label={isCopied ? text.common.copied : label} onClick={() => void onClick()}>
      <Icon name={isCopied ? 'check' : 'copy'} />
      <span aria-live="polite">{isCopied ? text.common.copied : text.common.copy}</span>
    </button>
  );
}

/** Whether it was copied. Browsers have a clipboard for pages that came over TLS only; the old way works without. */
export async function copy(words: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {
    return copyByHand(words);
  }
}

function copyByHand(words: string): boolean {
  const before = document.activeElement;
  const field = document.createElement('textarea');
  field.value = words;
  field.readOnly = true;
  field.className = 'heard';
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
