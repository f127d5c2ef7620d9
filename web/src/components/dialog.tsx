// Something that has to be decided before anything else.
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** Open as long as it is shown. The browser keeps the focus inside and gives it back afterwards. */
export function Dialog({ title, onClose, isWide = false, children }: { title: string; onClose: () => void; isWide?: boolean; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  // Before it is taken out of the page: a dialog that is not in it any more cannot give the focus back.
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
