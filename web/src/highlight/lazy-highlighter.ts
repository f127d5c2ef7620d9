// Lazy highlighter: loads the highlighter when code is shown for the first time.
import { signal } from '@preact/signals';

type Highlighter = typeof import('./highlighter');

/** Undefined until it is loaded; code is plain meanwhile. */
export const highlighter = signal<Highlighter | undefined>(undefined);
let loading: Promise<void> | undefined;

export function loadHighlighter(): void {
  loading ??= import('./highlighter').then(
    (loaded) => void (highlighter.value = loaded),
    // Offline, or the server was updated: try again with the next code. Plain code can be read, too.
    () => void (loading = undefined),
  );
}
