// The limits in force, and changing some of them until the next start.
import type { Http } from '@switchboard/client';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { request } from '../account';
import { say } from '../parts/toast';
import { text } from '../text';
import { useAct } from './confirm';
import { useLoad } from './load';
import { Table, Trouble } from './table';
import type { Column } from './table';

const words = text.admin.limits;
const EVERY_MS = 15_000;
const MOST = 100_000;

type Limit = Http.LimitBody;

const NAME: Column<Limit> = { label: words.name, show: ({ name }) => text.admin.limit(name) };
const CONFIGURED: Column<Limit> = { label: words.configured, kind: 'number', show: ({ configured }) => text.admin.number(configured) };
const REFUSED: Column<Limit> = { label: words.refused, kind: 'number', show: ({ refused }) => <span class={refused > 0 ? 'admin-bad' : ''}>{text.admin.number(refused)}</span> };

export function Limits() {
  const limits = useLoad(() => request<Http.LimitsBody>('GET', '/api/admin/limits'), '', EVERY_MS);
  const all = limits.data?.limits ?? [];
  const value: Column<Limit> = { label: words.value, kind: 'number', show: (limit) => <Value limit={limit} onChanged={limits.reload} /> };
  const fixed: Column<Limit> = { label: words.value, kind: 'number', show: (limit) => text.admin.number(limit.value) };
  const marks = { keyOf: ({ name }: Limit) => name, mark: ({ name }: Limit) => ({ 'data-limit': name }) };
  return (
    <section class="admin-limits">
      <h3>{words.title}</h3>
      <p class="soft small">{words.scope}</p>
      <Trouble of={limits} />
      <Table caption={words.caption} columns={[NAME, value, CONFIGURED, REFUSED]} rows={all.filter(({ adjustable }) => adjustable)} {...marks} />
      <details>
        <summary>{words.fixed}</summary>
        <Table caption={words.fixed} columns={[NAME, fixed, REFUSED]} rows={all.filter(({ adjustable }) => !adjustable)} {...marks} />
      </details>
    </section>
  );
}

function Value({ limit, onChanged }: { limit: Limit; onChanged: () => Promise<void> }) {
  const [isOpen, setOpen] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const name = text.admin.limit(limit.name);
  const change = async (value: number) => {
    await request('PATCH', '/api/admin/limits', { [limit.name]: value });
    await onChanged();
    say(words.changed(name, value));
    setOpen(false);
  };
  // The button that opened the form is there again when the form has gone.
  const wasOpen = useRef(false);
  useLayoutEffect(() => {
    if (wasOpen.current && !isOpen) opener.current?.focus();
    wasOpen.current = isOpen;
  }, [isOpen]);
  if (isOpen) return <Form limit={limit} onSave={change} onClose={() => setOpen(false)} />;
  return (
    <span class="admin-value">
      <span>{text.admin.number(limit.value)}</span>
      <button ref={opener} type="button" class="button quiet small" aria-label={words.changeOf(name)} onClick={() => setOpen(true)} data-part="change-limit">
        {words.change}
      </button>
    </span>
  );
}

function Form({ limit, onSave, onClose }: { limit: Limit; onSave: (value: number) => Promise<void>; onClose: () => void }) {
  const [given, setGiven] = useState(String(limit.value));
  const [wrong, setWrong] = useState('');
  const field = useRef<HTMLInputElement>(null);
  const saving = useAct(() => onSave(Number(given)));
  useLayoutEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  const onSubmit = (event: Event) => {
    event.preventDefault();
    const isGood = /^\d+$/.test(given.trim()) && Number(given) >= 1 && Number(given) <= MOST;
    setWrong(isGood ? '' : words.range);
    if (isGood) void saving.run();
    else field.current?.focus();
  };
  return (
    <form class="admin-value" onSubmit={onSubmit} onKeyDown={(event) => event.key === 'Escape' && !saving.isBusy && onClose()} noValidate>
      <input ref={field} class="input" inputMode="numeric" aria-label={text.admin.limit(limit.name)} aria-invalid={wrong !== ''} value={given} onInput={(event) => setGiven(event.currentTarget.value)} />
      {limit.value !== limit.configured && (
        <button type="button" class="button quiet small" onClick={() => setGiven(String(limit.configured))}>
          {words.back(limit.configured)}
        </button>
      )}
      <button type="button" class="button quiet small" onClick={() => saving.isBusy || onClose()}>
        {text.common.cancel}
      </button>
      <button type="submit" class="button small" aria-disabled={saving.isBusy}>
        {saving.isBusy ? text.common.moment : text.common.save}
      </button>
      <p class="error" role="alert">{wrong || saving.error}</p>
    </form>
  );
}
