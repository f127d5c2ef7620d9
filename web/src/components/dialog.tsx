// Dialog: a modal dialog.
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** Open while mounted. The browser traps the focus and restores it afterwards. */
export function Dialog({ title, onClose, isWide = false, children }: { title: string; onClose: () => void; isWide?: boolean; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  // A layout effect: a dialog that has left the page can no longer restore the focus.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  const closeOutside = (event: MouseEvent) => {
    if (event.target === element.current) onClose();
  };
  return (
    <dialog
      ref={element}
      class={`dialog ${isWide ? 'wide' : ''}`}
      aria-label={title}
      onMouseDown={closeOutside}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <h2 tabIndex={-1}>{title}</h2>
      {children}
    </dialog>
  );
}
