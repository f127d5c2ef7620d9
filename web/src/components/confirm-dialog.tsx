// Confirm dialog: asks before an action that cannot be undone.
import type { ComponentChildren } from 'preact';
import { text } from '../text';
import { Dialog } from './dialog';
import { useAction } from './use-action';
import { useIsMounted } from './use-is-mounted';

interface ConfirmProps {
  title: string;
  /** The label of the button that confirms. */
  label: string;
  busyLabel: string;
  onClose: () => void;
  /** The dialog closes when it is done; an error is shown. */
  action: () => Promise<void>;
  /** What will be lost. */
  children: ComponentChildren;
}

/** Cancel comes first, so it has the focus. */
export function ConfirmDialog({ title, label, busyLabel, onClose, action, children }: ConfirmProps) {
  const isMounted = useIsMounted();
  const { isBusy, error, run } = useAction(async () => {
    await action();
    if (isMounted.current) onClose();
  });
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <p class="error" role="alert">{error}</p>
      <div class="dialog-buttons">
        <button type="button" class="button quiet" onClick={onClose}>{text.common.cancel}</button>
        <button type="button" class="button danger" data-part="confirm" aria-disabled={isBusy} onClick={() => void run()}>
          {isBusy ? busyLabel : label}
        </button>
      </div>
    </Dialog>
  );
}
