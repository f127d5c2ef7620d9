// File drop: files dropped anywhere on the page go to its prompt box. Without one they are not accepted; the
// browser never opens them in place of the page.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

/** Whether files are being dragged over the page. */
export const isDragging = signal(false);

type Receiver = (files: FileList) => void;
let receiver: Receiver | undefined;

/** Gives dropped files to this component while it is mounted. */
export function useFileDrop(receive: Receiver): void {
  useEffect(() => {
    receiver = receive;
    return () => {
      if (receiver === receive) receiver = undefined;
      isDragging.value = false;
    };
  });
}

function hasFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes('Files') ?? false;
}

addEventListener('dragover', (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  if (event.dataTransfer) event.dataTransfer.dropEffect = receiver ? 'copy' : 'none';
  isDragging.value = receiver !== undefined;
});
addEventListener('dragleave', (event) => {
  // Only when the pointer leaves the window, not from one element to another.
  if (event.relatedTarget === null) isDragging.value = false;
});
addEventListener('drop', (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  isDragging.value = false;
  const files = event.dataTransfer?.files;
  if (files && files.length > 0) receiver?.(files);
});
