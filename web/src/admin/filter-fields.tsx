// Fields that narrow a list.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

const PAUSE_MS = 300;

/** The row they stand in. */
export function Filters({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <form class="admin-filters" role="search" aria-label={label} onSubmit={(event) => event.preventDefault()}>
      {children}
    </form>
  );
}

/** A text; it counts once somebody pauses. `name` is the field's own. */
export function TextFilter({ name, label, value, onChange, hint }: { name: string; label: string; value: string; onChange: (value: string) => void; hint?: string }) {
  const [given, setGiven] = useState(value);
  const told = useRef(value);
  // Changed from elsewhere: a link that leads here with a filter.
  useEffect(() => {
    if (value !== told.current) setGiven((told.current = value));
  }, [value]);
  useEffect(() => {
    const tell = () => given.trim() !== told.current && onChange((told.current = given.trim()));
    const timer = setTimeout(tell, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [given]);
  return (
    <label class="admin-filter">
      <span>{label}</span>
      <input class="input" type="search" name={name} value={given} placeholder={hint} autocomplete="off" autocapitalize="none" spellcheck={false} onInput={(event) => setGiven(event.currentTarget.value)} />
    </label>
  );
}

/** One of a few. `options` are `option`s, also grouped. */
export function ChoiceFilter({ name, label, value, onChange, children }: { name: string; label: string; value: string; onChange: (value: string) => void; children: ComponentChildren }) {
  return (
    <label class="admin-filter">
      <span>{label}</span>
      <select class="input" name={name} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {children}
      </select>
    </label>
  );
}

/** A day, as the browser's own field gives it: `2026-03-01`. */
export function DayFilter({ name, label, value, onChange }: { name: string; label: string; value: string; onChange: (value: string) => void }) {
  return (
    <label class="admin-filter">
      <span>{label}</span>
      <input class="input" type="date" name={name} value={value} onChange={(event) => onChange(event.currentTarget.value)} />
    </label>
  );
}
