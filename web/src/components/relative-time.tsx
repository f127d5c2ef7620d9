// Relative time: how long ago something was.
import { signal } from '@preact/signals';

const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 30_000);

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const STEPS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];

/** The exact time is the tooltip. */
export function RelativeTime({ at }: { at: string }) {
  const moment = new Date(at);
  return (
    <time dateTime={at} title={exact.format(moment)}>
      {ago(moment.getTime(), now.value)}
    </time>
  );
}

function ago(then: number, at: number): string {
  const seconds = Math.round((then - at) / 1000);
  for (const [unit, size] of STEPS) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return relative.format(0, 'second');
}
