// A line in which `this` is code.

export function Coded({ line }: { line: string }) {
  const parts = line.split(/`([^`\n]+)`/);
  return <>{parts.map((part, place) => (place % 2 === 1 ? <code key={place}>{part}</code> : part))}</>;
}
