// Countdown: a hook that counts the seconds until a moment.
import { useEffect, useReducer, useRef } from 'preact/hooks';

/** Whole seconds until a moment; `onEnd` is called when they are over. */
export function useCountdown(until: number | undefined, onEnd?: () => void): number {
  const [, renderAgain] = useReducer((ticks: number) => ticks + 1, 0);
  const end = useRef(onEnd);
  end.current = onEnd;
  useEffect(() => {
    if (until === undefined) return;
    const timer = setInterval(() => {
      renderAgain(undefined);
      if (Date.now() < until) return;
      clearInterval(timer);
      end.current?.();
    }, 250);
    return () => clearInterval(timer);
  }, [until]);
  // The clock is read at each rendering: a moment kept from the last one would show too many seconds.
  return until === undefined ? 0 : Math.max(0, Math.ceil((until - Date.now()) / 1000));
}
