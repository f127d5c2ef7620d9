// Who did what.
import type { Http } from '@switchboard/client';
import { useState } from 'preact/hooks';
import { request } from '../account';
import { Icon } from '../parts/icon';
import { say } from '../parts/toast';
import { text } from '../text';
import { keepFocus } from './confirm';
import { csv, save } from './csv';
import { ChoiceFilter, DayFilter, Filters, TextFilter } from './filters';
import { ask, useList } from './load';
import type { Page } from './load';
import { ALL_ACTS, actFilter } from './narrowed';
import { List } from './table';
import type { Column } from './table';

const words = text.admin.audit;
const PACE = { size: 100, most: 1_000 };
const OTHER = 'other';
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

type Act = Http.ActBody;

async function read(filter: typeof ALL_ACTS, from: string | number | undefined, limit: number): Promise<Page<Act>> {
  const moments = { since: beginning(filter.since, 0), until: beginning(filter.until, 1) };
  const { acts, next } = await request<Http.ActsBody>('GET', ask('/api/admin/audit', { ...filter, ...moments, before: from, limit }));
  return { items: acts, next };
}

/** When a day begins where whoever looks is, or the one `later` days after it. */
function beginning(day: string, later: number): string | undefined {
  if (!day) return undefined;
  const moment = new Date(`${day}T00:00:00`);
  moment.setDate(moment.getDate() + later);
  return Number.isNaN(moment.getTime()) ? undefined : moment.toISOString();
}

export function AuditPart() {
  const filter = actFilter.value;
  const list = useList((from, limit) => read(filter, from, limit), JSON.stringify(filter), PACE);
  const acts = list.data?.items ?? [];
  return (
    <>
      <div class="admin-head">
        <h2 tabIndex={-1}>{text.admin.part.audit}</h2>
        <button type="button" class="button quiet" aria-disabled={acts.length === 0} onClick={() => acts.length > 0 && keep(acts)} data-part="export">
          <Icon name="file" />
          {words.export}
        </button>
      </div>
      <Narrow />
      <p class="soft small">{words.days}</p>
      <List list={list} caption={words.caption} columns={COLUMNS} empty={words.empty} more={words.older} keyOf={({ id }) => id} mark={({ id, action }) => ({ 'data-act': id, 'data-action': action })} />
    </>
  );
}

function keep(acts: readonly Act[]): void {
  const rows = acts.map(({ id, at, actor, address, action, target }) => [id, at, actor, address ?? '', action, target]);
  save(words.file(new Date().toISOString().slice(0, 10)), csv([words.columns, ...rows]));
  say(words.exported(acts.length));
}

function Narrow() {
  const filter = actFilter.value;
  const narrow = (change: Partial<typeof filter>) => (actFilter.value = { ...actFilter.value, ...change });
  const [cleared, setCleared] = useState(0);
  const clear = () => {
    actFilter.value = ALL_ACTS;
    setCleared(cleared + 1);
    keepFocus();
  };
  const isNarrowed = Object.values(filter).some(Boolean);
  return (
    <Filters label={text.admin.table.filter}>
      <TextFilter name="actor" label={words.actor} hint={text.admin.table.whole} value={filter.actor} onChange={(actor) => narrow({ actor })} />
      <WhatFilter key={cleared} action={filter.action} onChange={(action) => narrow({ action })} />
      <TextFilter name="target" label={words.target} hint={words.targetHint} value={filter.target} onChange={(target) => narrow({ target })} />
      <DayFilter name="since" label={words.since} value={filter.since} onChange={(since) => narrow({ since })} />
      <DayFilter name="until" label={words.until} value={filter.until} onChange={(until) => narrow({ until })} />
      {isNarrowed && (
        <button type="button" class="button quiet" onClick={clear}>
          {words.clear}
        </button>
      )}
    </Filters>
  );
}

/** One of the acts that are known here, all of a kind, or whatever else somebody types. */
function WhatFilter({ action, onChange }: { action: string; onChange: (action: string) => void }) {
  const [isOther, setOther] = useState(action !== '' && !isKnown(action));
  const choose = (value: string) => {
    setOther(value === OTHER);
    if (value !== OTHER) onChange(value);
  };
  return (
    <>
      <ChoiceFilter name="action" label={words.action} value={isOther ? OTHER : action} onChange={choose}>
        <option value="">{words.all}</option>
        {Object.entries(words.actions).map(([group, { all, each }]) => (
          <optgroup key={group} label={all}>
            <option value={`${group}.`}>{words.allAbout(all)}</option>
            {Object.entries(each).map(([name, said]) => (
              <option key={name} value={name}>{said}</option>
            ))}
          </optgroup>
        ))}
        <option value={OTHER}>{words.other}</option>
      </ChoiceFilter>
      {isOther && <TextFilter name="other" label={words.otherLabel} hint={words.otherHint} value={action} onChange={onChange} />}
    </>
  );
}

function isKnown(action: string): boolean {
  const group = words.actions[action.split('.')[0] ?? ''];
  return group !== undefined && (action.endsWith('.') || action in group.each);
}

const COLUMNS: readonly Column<Act>[] = [
  { label: words.when, show: ({ at }) => <time dateTime={at}>{exact.format(new Date(at))}</time> },
  { label: words.actor, kind: 'long', show: ({ actor }) => words.actors[actor] ?? actor },
  {
    label: words.action,
    show: ({ action }) => (
      <>
        {words.word(action)} <code class="soft">{action}</code>
      </>
    ),
  },
  { label: words.target, kind: 'long', show: ({ target }) => <span class="mono">{target}</span> },
  { label: words.address, kind: 'long', show: ({ address }) => <span class="mono">{address ?? ''}</span> },
];
