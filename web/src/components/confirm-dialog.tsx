// A question before something that cannot be taken back.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { explain } from '../account';
import { text } from '../text';
import { Dialog } from './dialog';
import { useAlive } from './form';

interface ConfirmProps {
  title: string;
  /** On the button that does it. */
  label: string;
  busyLabel: string;
  onClose: () => void;
  /** Closes when it is done; what it throws is shown. */
  action: () => Promise<void>;
  /** What will be lost. */
  children: ComponentChildren;
}

/** Asks, with the harmless answer first. */
export function Confirm({ title, label, busyLabel, onClose, action, children }: ConfirmProps) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState('');
  const isAlive = useAlive();
  const act = async () => {
    if (isBusy) return;
    setBusy(true);
    setError('');
    try {
      await action();
      if (isAlive.current) onClose();
    } catch (failure) {
      if (isAlive.current) setError(explain(failure));
    } finally {
      if (isAlive.current) setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <p class="error" role="alert">{error}</p>
      <div class="dialog-buttons">
        <button type="button" class="button quiet" onClick={onClose}>{text.common.cancel}</button>
        <button type="button" class="button danger" data-part="confirm" aria-disabled={isBusy} onClick={() => void act()}>
          {isBusy ? busyLabel : label}
        </button>
      </div>
    </Dialog>
  );
}
