// Countdown: the time left to answer.
import { useEffect, useState } from 'preact/hooks';
import { text } from '../../text';

const strings = text.questions;

export function Countdown({ until }: { until: string }) {
  const left = useSecondsUntil(until);
  return <time class="small soft countdown" dateTime={until} title={strings.leftMeans}>{left <= 0 ? strings.timeUp : strings.left(span(left))}</time>;
}

/** Updates every second only near the end. */
function useSecondsUntil(until: string): number {
  const end = Date.parse(until);
  const [left, setLeft] = useState(() => secondsUntil(end));
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const tick = () => {
      const now = secondsUntil(end);
      setLeft(now);
      if (now > 0) timer = setTimeout(tick, now > 120 ? 15_000 : 1_000);
    };
    tick();
    return () => clearTimeout(timer);
  }, [end]);
  return left;
}

function secondsUntil(end: number): number {
  return Math.ceil((end - Date.now()) / 1000);
}

function span(seconds: number): string {
  if (seconds <= 120) return strings.seconds(seconds);
  return seconds < 7_200 ? strings.minutes(Math.round(seconds / 60)) : strings.hours(Math.round(seconds / 3600));
}
