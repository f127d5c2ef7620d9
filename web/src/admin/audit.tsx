// Audit section: who did what, with filters and CSV export.
import type { Http } from '@switchboard/client';
import { useState } from 'preact/hooks';
import { request } from '../auth';
import { Icon } from '../components/icon';
import { showToast } from '../components/toast';
import { text } from '../text';
import { csv, saveCsv } from './csv';
import { ChoiceFilter, DayFilter, Filters, TextFilter } from './filter-fields';
import { ALL_AUDIT_ENTRIES, auditFilter } from './filter-state';
import { restoreFocus } from './restore-focus';
import { PagedTable } from './table';
import type { Column } from './table';
import { useList, withQuery } from './use-load';
import type { Page } from './use-load';

const strings = text.admin.audit;
const PAGE_SIZE = { size: 100, maxPerRequest: 1_000 };
const OTHER = 'other';
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

type AuditEntry = Http.ActBody;

async function readPage(filter: typeof ALL_AUDIT_ENTRIES, from: string | number | undefined, limit: number): Promise<Page<AuditEntry>> {
  const bounds = { since: startOfDay(filter.since, 0), until: startOfDay(filter.until, 1) };
  const { acts: entries, next } = await request<Http.ActsBody>('GET', withQuery('/api/admin/audit', { ...filter, ...bounds, before: from, limit }));
  return { items: entries, next };
}

/** The start of a day in the reader's time zone, or of a later day. */
function startOfDay(day: string, daysLater: number): string | undefined {
  if (!day) return undefined;
  const moment = new Date(`${day}T00:00:00`);
  moment.setDate(moment.getDate() + daysLater);
  return Number.isNaN(moment.getTime()) ? undefined : moment.toISOString();
}

export function AuditSection() {
  const filter = auditFilter.value;
  const list = useList((from, limit) => readPage(filter, from, limit), JSON.stringify(filter), PAGE_SIZE);
  const entries = list.data?.items ?? [];
  return (
    <>
      <div class="admin-head">
        <h2 tabIndex={-1}>{text.admin.part.audit}</h2>
        <button type="button" class="button quiet" aria-disabled={entries.length === 0} onClick={() => entries.length > 0 && exportCsv(entries)} data-part="export">
          <Icon name="file" />
          {strings.export}
        </button>
      </div>
      <AuditFilters />
      <p class="soft small">{strings.days}</p>
      <PagedTable list={list} caption={strings.caption} columns={COLUMNS} empty={strings.empty} more={strings.older} keyOf={({ id }) => id} rowAttributes={({ id, action }) => ({ 'data-act': id, 'data-action': action })} />
    </>
  );
}

function exportCsv(entries: readonly AuditEntry[]): void {
  const rows = entries.map(({ id, at, actor, address, action, target }) => [id, at, actor, address ?? '', action, target]);
  saveCsv(strings.file(new Date().toISOString().slice(0, 10)), csv([strings.columns, ...rows]));
  showToast(strings.exported(entries.length));
}

function AuditFilters() {
  const filter = auditFilter.value;
  const setFilter = (change: Partial<typeof filter>) => (auditFilter.value = { ...auditFilter.value, ...change });
  const [cleared, setCleared] = useState(0);
  const clear = () => {
    auditFilter.value = ALL_AUDIT_ENTRIES;
    setCleared(cleared + 1);
    restoreFocus();
  };
  const isFiltered = Object.values(filter).some(Boolean);
  return (
    <Filters label={text.admin.table.filter}>
      <TextFilter name="actor" label={strings.actor} hint={text.admin.table.whole} value={filter.actor} onChange={(actor) => setFilter({ actor })} />
      <ActionFilter key={cleared} action={filter.action} onChange={(action) => setFilter({ action })} />
      <TextFilter name="target" label={strings.target} hint={strings.targetHint} value={filter.target} onChange={(target) => setFilter({ target })} />
      <DayFilter name="since" label={strings.since} value={filter.since} onChange={(since) => setFilter({ since })} />
      <DayFilter name="until" label={strings.until} value={filter.until} onChange={(until) => setFilter({ until })} />
      {isFiltered && (
        <button type="button" class="button quiet" onClick={clear}>
          {strings.clear}
        </button>
      )}
    </Filters>
  );
}

/** A known action, a group of actions, or free text. */
function ActionFilter({ action, onChange }: { action: string; onChange: (action: string) => void }) {
  const [isOther, setOther] = useState(action !== '' && !isKnown(action));
  const choose = (value: string) => {
    setOther(value === OTHER);
    if (value !== OTHER) onChange(value);
  };
  return (
    <>
      <ChoiceFilter name="action" label={strings.action} value={isOther ? OTHER : action} onChange={choose}>
        <option value="">{strings.all}</option>
        {Object.entries(strings.actions).map(([group, { all, each }]) => (
          <optgroup key={group} label={all}>
            <option value={`${group}.`}>{strings.allAbout(all)}</option>
            {Object.entries(each).map(([name, label]) => (
              <option key={name} value={name}>{label}</option>
            ))}
          </optgroup>
        ))}
        <option value={OTHER}>{strings.other}</option>
      </ChoiceFilter>
      {isOther && <TextFilter name="other" label={strings.otherLabel} hint={strings.otherHint} value={action} onChange={onChange} />}
    </>
  );
}

function isKnown(action: string): boolean {
  const group = strings.actions[action.split('.')[0] ?? ''];
  return group !== undefined && (action.endsWith('.') || action in group.each);
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  { label: strings.when, show: ({ at }) => <time dateTime={at}>{exact.format(new Date(at))}</time> },
  { label: strings.actor, kind: 'long', show: ({ actor }) => strings.actors[actor] ?? actor },
  {
    label: strings.action,
    show: ({ action }) => (
      <>
        {strings.word(action)} <code class="soft">{action}</code>
      </>
    ),
  },
  { label: strings.target, kind: 'long', show: ({ target }) => <span class="mono">{target}</span> },
  { label: strings.address, kind: 'long', show: ({ address }) => <span class="mono">{address ?? ''}</span> },
];
