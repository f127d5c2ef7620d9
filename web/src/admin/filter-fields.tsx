// Filter fields: inputs that filter a list.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

const DEBOUNCE_MS = 300;

/** The row of filter fields. */
export function Filters({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <form class="admin-filters" role="search" aria-label={label} onSubmit={(event) => event.preventDefault()}>
      {children}
    </form>
  );
}

/** A text field that reports after a pause in typing. */
export function TextFilter({ name, label, value, onChange, hint }: { name: string; label: string; value: string; onChange: (value: string) => void; hint?: string }) {
  const [typed, setTyped] = useState(value);
  const reported = useRef(value);
  // Set from elsewhere, such as a link that filters the list.
  useEffect(() => {
    if (value !== reported.current) setTyped((reported.current = value));
  }, [value]);
  useEffect(() => {
    const report = () => typed.trim() !== reported.current && onChange((reported.current = typed.trim()));
    const timer = setTimeout(report, DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <label class="admin-filter">
      <span>{label}</span>
      <input class="input" type="search" name={name} value={typed} placeholder={hint} autocomplete="off" autocapitalize="none" spellcheck={false} onInput={(event) => setTyped(event.currentTarget.value)} />
    </label>
  );
}

/** A select field. */
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

/** A day, such as `2026-03-01`. */
export function DayFilter({ name, label, value, onChange }: { name: string; label: string; value: string; onChange: (value: string) => void }) {
  return (
    <label class="admin-filter">
      <span>{label}</span>
      <input class="input" type="date" name={name} value={value} onChange={(event) => onChange(event.currentTarget.value)} />
    </label>
  );
}
