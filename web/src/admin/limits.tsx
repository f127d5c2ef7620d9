// Limits: shows the limits in force and changes some of them until the next restart.
import type { Http } from '@switchboard/client';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { request } from '../auth';
import { showToast } from '../components/toast';
import { useAction } from '../components/use-action';
import { text } from '../text';
import { LoadError, Table } from './table';
import type { Column } from './table';
import { useLoad } from './use-load';

const strings = text.admin.limits;
const POLL_MS = 15_000;
const MAX_VALUE = 100_000;

type Limit = Http.LimitBody;

const NAME: Column<Limit> = { label: strings.name, show: ({ name }) => text.admin.limit(name) };
const CONFIGURED: Column<Limit> = { label: strings.configured, kind: 'number', show: ({ configured }) => text.admin.number(configured) };
const REFUSED: Column<Limit> = { label: strings.refused, kind: 'number', show: ({ refused }) => <span class={refused > 0 ? 'admin-bad' : ''}>{text.admin.number(refused)}</span> };

export function Limits() {
  const limits = useLoad(() => request<Http.LimitsBody>('GET', '/api/admin/limits'), '', POLL_MS);
  const all = limits.data?.limits ?? [];
  const value: Column<Limit> = { label: strings.value, kind: 'number', show: (limit) => <LimitValue limit={limit} onChanged={limits.reload} /> };
  const fixed: Column<Limit> = { label: strings.value, kind: 'number', show: (limit) => text.admin.number(limit.value) };
  const rows = { keyOf: ({ name }: Limit) => name, rowAttributes: ({ name }: Limit) => ({ 'data-limit': name }) };
  return (
    <section class="admin-limits">
      <h3>{strings.title}</h3>
      <p class="soft small">{strings.scope}</p>
      <LoadError loaded={limits} />
      <Table caption={strings.caption} columns={[NAME, value, CONFIGURED, REFUSED]} rows={all.filter(({ adjustable }) => adjustable)} {...rows} />
      <details>
        <summary>{strings.fixed}</summary>
        <Table caption={strings.fixed} columns={[NAME, fixed, REFUSED]} rows={all.filter(({ adjustable }) => !adjustable)} {...rows} />
      </details>
    </section>
  );
}

function LimitValue({ limit, onChanged }: { limit: Limit; onChanged: () => Promise<void> }) {
  const [isOpen, setOpen] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const name = text.admin.limit(limit.name);
  const change = async (value: number) => {
    await request('PATCH', '/api/admin/limits', { [limit.name]: value });
    await onChanged();
    showToast(strings.changed(name, value));
    setOpen(false);
  };
  // The button reappears when the form closes; give it the focus back.
  const wasOpen = useRef(false);
  useLayoutEffect(() => {
    if (wasOpen.current && !isOpen) opener.current?.focus();
    wasOpen.current = isOpen;
  }, [isOpen]);
  if (isOpen) return <LimitForm limit={limit} onSave={change} onClose={() => setOpen(false)} />;
  return (
    <span class="admin-value">
      <span>{text.admin.number(limit.value)}</span>
      <button ref={opener} type="button" class="button quiet small" aria-label={strings.changeOf(name)} onClick={() => setOpen(true)} data-part="change-limit">
        {strings.change}
      </button>
    </span>
  );
}

function LimitForm({ limit, onSave, onClose }: { limit: Limit; onSave: (value: number) => Promise<void>; onClose: () => void }) {
  const [typed, setTyped] = useState(String(limit.value));
  const [problem, setProblem] = useState('');
  const field = useRef<HTMLInputElement>(null);
  const saving = useAction(() => onSave(Number(typed)));
  useLayoutEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  const onSubmit = (event: Event) => {
    event.preventDefault();
    const isValid = /^\d+$/.test(typed.trim()) && Number(typed) >= 1 && Number(typed) <= MAX_VALUE;
    setProblem(isValid ? '' : strings.range);
    if (isValid) void saving.run();
    else field.current?.focus();
  };
  return (
    <form class="admin-value" onSubmit={onSubmit} onKeyDown={(event) => event.key === 'Escape' && !saving.isBusy && onClose()} noValidate>
      <input ref={field} class="input" inputMode="numeric" aria-label={text.admin.limit(limit.name)} aria-invalid={problem !== ''} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      {limit.value !== limit.configured && (
        <button type="button" class="button quiet small" onClick={() => setTyped(String(limit.configured))}>
          {strings.back(limit.configured)}
        </button>
      )}
      <button type="button" class="button quiet small" onClick={() => saving.isBusy || onClose()}>
        {text.common.cancel}
      </button>
      <button type="submit" class="button small" aria-disabled={saving.isBusy}>
        {saving.isBusy ? text.common.moment : text.common.save}
      </button>
      <p class="error" role="alert">{problem || saving.error}</p>
    </form>
  );
}
