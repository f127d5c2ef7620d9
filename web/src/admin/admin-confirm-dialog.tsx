// Admin confirm dialog: asks before an action, optionally by typing a name.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Dialog } from '../components/dialog';
import { useAction } from '../components/use-action';
import { text } from '../text';

interface AdminConfirmDialogProps {
  title: string;
  /** The label of the button that confirms. */
  label: string;
  /** What must be typed to confirm. */
  typedConfirmation?: { expected: string; label: string };
  isHarmless?: boolean;
  onConfirm: () => Promise<void>;
  onClose: () => void;
  children: ComponentChildren;
}

/** Stays open until the action has succeeded, and shows its error. */
export function AdminConfirmDialog({ title, label, typedConfirmation, isHarmless = false, onConfirm, onClose, children }: AdminConfirmDialogProps) {
  const [typed, setTyped] = useState('');
  const { isBusy, error, run } = useAction(onConfirm);
  const isReady = !isBusy && (!typedConfirmation || typed.trim() === typedConfirmation.expected);
  const onSubmit = (event: Event) => {
    event.preventDefault();
    if (isReady) void run();
  };
  return (
    <Dialog title={title} onClose={() => isBusy || onClose()}>
      <form onSubmit={onSubmit} data-part="confirm">
        {children}
        {typedConfirmation && (
          <label class="field">
            <span>{typedConfirmation.label}</span>
            <input class="input" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} autocomplete="off" autocapitalize="none" spellcheck={false} />
          </label>
        )}
        <p class="error" role="alert">{error}</p>
        <div class="dialog-buttons">
          <button type="button" class="button quiet" aria-disabled={isBusy} onClick={() => isBusy || onClose()}>
            {text.common.cancel}
          </button>
          <button type="submit" class={`button ${isHarmless ? '' : 'danger'}`} aria-disabled={!isReady} data-part="do">
            {isBusy ? text.common.moment : label}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
