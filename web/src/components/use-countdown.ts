// Countdown: a hook that counts the seconds until a moment.
import { useEffect, useRef, useState } from 'preact/hooks';

/** Whole seconds until a moment; `onEnd` is called when they are over. */
export function useCountdown(until: number | undefined, onEnd?: () => void): number {
  const [now, setNow] = useState(Date.now());
  const end = useRef(onEnd);
  end.current = onEnd;
  useEffect(() => {
    if (until === undefined) return;
    setNow(Date.now());
    const timer = setInterval(() => {
      setNow(Date.now());
      if (Date.now() < until) return;
      clearInterval(timer);
      end.current?.();
    }, 250);
    return () => clearInterval(timer);
  }, [until]);
  return until === undefined ? 0 : Math.max(0, Math.ceil((until - now) / 1000));
}
