// Asking once more before something is done that cannot be taken back.
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { explain } from '../account';
import { Dialog } from '../parts/dialog';
import { text } from '../text';

interface ConfirmProps {
  title: string;
  /** The words on the button that does it. */
  action: string;
  /** What has to be typed before it is done. */
  typed?: { what: string; label: string };
  isHarmless?: boolean;
  onDo: () => Promise<void>;
  onClose: () => void;
  children: ComponentChildren;
}

/** Stays open until it is done, and says what went wrong if it is not. */
export function Confirm({ title, action, typed, isHarmless = false, onDo, onClose, children }: ConfirmProps) {
  const [given, setGiven] = useState('');
  const { isBusy, error, run } = useAct(onDo);
  const isReady = !isBusy && (!typed || given.trim() === typed.what);
  const onSubmit = (event: Event) => {
    event.preventDefault();
    if (isReady) void run();
  };
  return (
    <Dialog title={title} onClose={() => isBusy || onClose()}>
      <form onSubmit={onSubmit} data-part="confirm">
        {children}
        {typed && (
          <label class="field">
            <span>{typed.label}</span>
            <input class="input" value={given} onInput={(event) => setGiven(event.currentTarget.value)} autocomplete="off" autocapitalize="none" spellcheck={false} />
          </label>
        )}
        <p class="error" role="alert">{error}</p>
        <div class="dialog-buttons">
          <button type="button" class="button quiet" aria-disabled={isBusy} onClick={() => isBusy || onClose()}>
            {text.common.cancel}
          </button>
          <button type="submit" class={`button ${isHarmless ? '' : 'danger'}`} aria-disabled={!isReady} data-part="do">
            {isBusy ? text.common.moment : action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Something that is done by a button: once at a time, with words if it failed. */
export function useAct(act: () => Promise<void>): { isBusy: boolean; error: string; run: () => Promise<void> } {
  const [state, setState] = useState({ isBusy: false, error: '' });
  // The state is known after the next rendering only; a double click is faster.
  const isBusy = useRef(false);
  const run = async () => {
    if (isBusy.current) return;
    isBusy.current = true;
    setState({ isBusy: true, error: '' });
    const error = await act().then(() => '', explain);
    isBusy.current = false;
    setState({ isBusy: false, error });
  };
  return { ...state, run };
}

/** After something has gone from the page with the focus in it: the heading of the part has it. */
export function keepFocus(): void {
  requestAnimationFrame(() => {
    if (document.activeElement && document.activeElement !== document.body) return;
    document.querySelector<HTMLElement>('[data-part=admin] h2')?.focus();
  });
}
