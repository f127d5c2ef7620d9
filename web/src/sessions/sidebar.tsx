// Beside the desk: the sessions, and the ways to everything else.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { explain, standing } from '../account';
import { isDrawerOpen } from '../bar';
import { Icon, IconButton } from '../parts/icon';
import { say } from '../parts/toast';
import { address, place } from '../place';
import { text } from '../text';
import { list } from './list';
import type { Row as Session } from './list';
import { Row } from './row';
import { Search } from './search';

export function Sidebar() {
  const element = useRef<HTMLElement>(null);
  const search = useMemo(() => new Search(), []);
  const isOpen = isDrawerOpen.value;
  useEffect(() => {
    if (!isOpen) return;
    element.current?.querySelector<HTMLElement>('.side-close')?.focus();
    const closed = (event: KeyboardEvent) => {
      // A menu or a dialog in it closes first.
      if (event.key === 'Escape' && !document.querySelector('dialog[open], .menu') && !event.defaultPrevented) isDrawerOpen.value = false;
    };
    addEventListener('keydown', closed);
    return () => {
      removeEventListener('keydown', closed);
      // Unless whatever was chosen has taken the focus already.
      const now = document.activeElement;
      if (!now || now === document.body || element.current?.contains(now)) document.querySelector<HTMLElement>('[data-part=drawer]')?.focus();
    };
  }, [isOpen]);
  return (
    <nav ref={element} class={`side ${isOpen ? 'open' : ''}`} aria-label={text.sessions.list}>
      <div class="side-top">
        <a class="brand" href={address({ page: 'new' })}>{text.common.name}</a>
        <IconButton name="close" class="side-close" label={text.sessions.closeList} onClick={() => (isDrawerOpen.value = false)} />
      </div>
      <a class="button side-new" data-part="new-session" href={address({ page: 'new' })}>
        <Icon name="plus" />
        {text.sessions.create}
      </a>
      <SearchBox search={search} />
      <div class="side-list" data-part="sessions">
        <Waiting />
        {search.words.value.trim() === '' ? <All /> : <Results search={search} />}
      </div>
      <Foot />
    </nav>
  );
}

function SearchBox({ search }: { search: Search }) {
  return (
    <form class="side-search" role="search" onSubmit={(event) => event.preventDefault()}>
      <Icon name="search" />
      <input
        class="input"
        id="search"
        type="search"
        aria-label={text.sessions.search}
        placeholder={text.sessions.search}
        value={search.words.value}
        onInput={(event) => search.want(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape' || search.words.value === '') return;
          event.preventDefault();
          search.want('');
        }}
      />
    </form>
  );
}

/** What waits for me: in sight whatever else the list shows. */
function Waiting() {
  const rows = list.waiting.value;
  return (
    <section class={`group waiting ${rows.length > 0 ? 'some' : ''}`} data-part="waiting">
      <h2>{text.sessions.waiting(rows.length)}</h2>
      {rows.length > 0 ? <Rows rows={rows} /> : <p class="small soft">{text.sessions.nothingWaits}</p>}
    </section>
  );
}

function All() {
  const [isArchiveShown, setArchiveShown] = useState(false);
  const waiting = list.waiting.value;
  const rows = list.rows.value.filter((row) => row.status !== 'archived' && !waiting.includes(row));
  const archived = list.rows.value.filter((row) => row.status === 'archived');
  const isEmpty = list.state.value === 'ready' && list.rows.value.length === 0;
  return (
    <>
      <section class="group">
        <h2>{text.sessions.others}</h2>
        {list.state.value === 'loading' && <p class="small soft">{text.common.loading}</p>}
        {isEmpty && <p class="small soft">{text.sessions.none}</p>}
        <Rows rows={rows} />
      </section>
      {isArchiveShown && (
        <section class="group" data-part="archived">
          <h2>{text.sessions.archived}</h2>
          {archived.length > 0 ? <Rows rows={archived} /> : <p class="small soft">{text.sessions.noArchived}</p>}
        </section>
      )}
      <More />
      <p class="small soft" role="status">{list.state.value === 'away' ? text.sessions.away : ''}</p>
      {(archived.length > 0 || list.more.value !== 'none' || isArchiveShown) && (
        <button type="button" class="link small" data-part="toggle-archived" aria-expanded={isArchiveShown} onClick={() => setArchiveShown(!isArchiveShown)}>
          {isArchiveShown ? text.sessions.hideArchived : text.sessions.showArchived}
        </button>
      )}
    </>
  );
}

function More() {
  const more = list.more.value;
  if (more === 'none') return null;
  const load = () => list.loadMore().catch((error: unknown) => say(explain(error), 'error'));
  return (
    <button type="button" class="button quiet small" data-part="more-sessions" aria-disabled={more === 'loading'} onClick={() => void load()}>
      {more === 'loading' ? text.common.loading : text.common.more}
    </button>
  );
}

function Results({ search }: { search: Search }) {
  const found = search.found.value;
  const rows = 'rows' in found ? found.rows : [];
  return (
    <section class="group" data-part="found" aria-busy={found.is === 'searching'}>
      <p class={found.is === 'failed' ? 'error small' : 'small soft'} role="status">{resultWords(search)}</p>
      <Rows rows={rows} />
    </section>
  );
}

function resultWords(search: Search): string {
  const found = search.found.value;
  switch (found.is) {
    case 'searching':
      return found.isBusy ? text.sessions.searchBusy : text.sessions.searching;
    case 'found':
      return found.hasMore ? text.sessions.foundMore(found.rows.length) : text.sessions.found(found.rows.length);
    case 'failed':
      return found.why;
    default:
      return '';
  }
}

function Rows({ rows }: { rows: readonly Session[] }) {
  const at = place.value;
  const current = at.page === 'session' ? at.id : undefined;
  return (
    <ul class="plain">
      {rows.map((row) => (
        <Row key={row.id} row={row} isCurrent={row.id === current} />
      ))}
    </ul>
  );
}

function Foot() {
  const now = standing.value;
  if (now.is !== 'in') return null;
  const at = place.value.page;
  return (
    <div class="side-foot">
      <a class="side-link" href={address({ page: 'account' })} data-part="account-link" aria-label={text.sessions.myAccount(now.user.username)} aria-current={at === 'account' ? 'page' : undefined}>
        <Icon name="person" />
        <span>{now.user.username}</span>
      </a>
      {now.user.role === 'admin' && (
        <a class="side-link" href={address({ page: 'admin', part: 'overview' })} data-part="admin-link" aria-current={at === 'admin' ? 'page' : undefined}>
          <Icon name="gear" />
          <span>{text.sessions.administration}</span>
        </a>
      )}
    </div>
  );
}
