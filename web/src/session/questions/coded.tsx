// A line in which `this` is code.

import { plainly, plainWords } from '../../parts/plainly';

export function Coded({ line }: { line: string }) {
  const parts = line.split(/`([^`\n]+)`/);
  return <>{parts.map((part, place) => (place % 2 === 1 ? <code key={place}>{plainly(part)}</code> : plainWords(part)))}</>;
}
