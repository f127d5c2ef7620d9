// Actions: hooks that run what a button does, once at a time.
import { useRef, useState } from 'preact/hooks';
import { explain } from '../auth';
import { showToast } from './toast';

/** Runs an action once at a time; keeps its error as text. */
export function useAction(action: () => Promise<void>): { isBusy: boolean; error: string; run: () => Promise<void> } {
  const [state, setState] = useState({ isBusy: false, error: '' });
  // A ref besides the state: a double click comes before the next render.
  const isBusy = useRef(false);
  const run = async () => {
    if (isBusy.current) return;
    isBusy.current = true;
    setState({ isBusy: true, error: '' });
    const error = await action().then(() => '', explain);
    isBusy.current = false;
    setState({ isBusy: false, error });
  };
  return { ...state, run };
}

/** `useAction` for buttons without room for an error: it is shown as a toast. */
export function useToastedAction(action: () => Promise<void>): { isBusy: boolean; run: () => void } {
  const { isBusy, run } = useAction(() => action().catch((error: unknown) => showToast(explain(error), 'error')));
  return { isBusy, run: () => void run() };
}
