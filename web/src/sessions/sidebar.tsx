// Sidebar: the session list, search, and links to the account and administration.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { currentUser, explain } from '../auth';
import { Icon, IconButton } from '../components/icon';
import { showToast } from '../components/toast';
import { hrefOf, route } from '../route';
import { text } from '../text';
import { isDrawerOpen } from '../top-bar';
import { sessionList } from './session-list';
import type { Row as Session } from './session-list';
import { SessionRow } from './session-row';
import { SessionSearch } from './session-search';

export function Sidebar() {
  const element = useRef<HTMLElement>(null);
  const search = useMemo(() => new SessionSearch(), []);
  const isOpen = isDrawerOpen.value;
  useEffect(() => {
    if (!isOpen) return;
    element.current?.querySelector<HTMLElement>('.side-close')?.focus();
    const onKeyDown = (event: KeyboardEvent) => {
      // An open menu or dialog closes first.
      if (event.key === 'Escape' && !document.querySelector('dialog[open], .menu') && !event.defaultPrevented) isDrawerOpen.value = false;
    };
    addEventListener('keydown', onKeyDown);
    return () => {
      removeEventListener('keydown', onKeyDown);
      // Unless the chosen page has already taken the focus.
      const focused = document.activeElement;
      if (!focused || focused === document.body || element.current?.contains(focused)) document.querySelector<HTMLElement>('[data-part=drawer]')?.focus();
    };
  }, [isOpen]);
  return (
    <nav ref={element} class={`side ${isOpen ? 'open' : ''}`} aria-label={text.sessions.list}>
      <div class="side-top">
        <a class="brand" href={hrefOf({ page: 'new' })}>{text.common.name}</a>
        <IconButton name="close" class="side-close" label={text.sessions.closeList} onClick={() => (isDrawerOpen.value = false)} />
      </div>
      <a class="button side-new" data-part="new-session" href={hrefOf({ page: 'new' })}>
        <Icon name="plus" />
        {text.sessions.create}
      </a>
      <SearchBox search={search} />
      <div class="side-list" data-part="sessions">
        <WaitingSessions />
        {search.query.value.trim() === '' ? <AllSessions /> : <Results search={search} />}
      </div>
      <SidebarFooter />
    </nav>
  );
}

function SearchBox({ search }: { search: SessionSearch }) {
  return (
    <form class="side-search" role="search" onSubmit={(event) => event.preventDefault()}>
      <Icon name="search" />
      <input
        class="input"
        id="search"
        type="search"
        aria-label={text.sessions.search}
        placeholder={text.sessions.search}
        value={search.query.value}
        onInput={(event) => search.setQuery(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape' || search.query.value === '') return;
          event.preventDefault();
          search.setQuery('');
        }}
      />
    </form>
  );
}

/** Sessions with a question for the user, above all others and always visible. */
function WaitingSessions() {
  const rows = sessionList.waiting.value;
  if (rows.length === 0) return null;
  return (
    <section class="group waiting" data-part="waiting">
      <h2>{text.sessions.waiting(rows.length)}</h2>
      <RowList rows={rows} />
    </section>
  );
}

function AllSessions() {
  const [isArchiveShown, setArchiveShown] = useState(false);
  const waiting = sessionList.waiting.value;
  const rows = sessionList.rows.value.filter((row) => row.status !== 'archived' && !waiting.includes(row));
  const archived = sessionList.rows.value.filter((row) => row.status === 'archived');
  const isEmpty = sessionList.state.value === 'ready' && sessionList.rows.value.length === 0;
  return (
    <>
      <section class="group">
        <h2>{text.sessions.others}</h2>
        {sessionList.state.value === 'loading' && <p class="small soft">{text.common.loading}</p>}
        {isEmpty && <p class="small soft">{text.sessions.none}</p>}
        <RowList rows={rows} />
      </section>
      {isArchiveShown && (
        <section class="group" data-part="archived">
          <h2>{text.sessions.archived}</h2>
          {archived.length > 0 ? <RowList rows={archived} /> : <p class="small soft">{text.sessions.noArchived}</p>}
        </section>
      )}
      <MoreButton />
      <p class="small soft" role="status">{sessionList.state.value === 'stale' ? text.sessions.away : ''}</p>
      {(archived.length > 0 || sessionList.more.value !== 'none' || isArchiveShown) && (
        <button type="button" class="link small" data-part="toggle-archived" aria-expanded={isArchiveShown} onClick={() => setArchiveShown(!isArchiveShown)}>
          {isArchiveShown ? text.sessions.hideArchived : text.sessions.showArchived}
        </button>
      )}
    </>
  );
}

function MoreButton() {
  const more = sessionList.more.value;
  if (more === 'none') return null;
  const load = () => sessionList.loadMore().catch((error: unknown) => showToast(explain(error), 'error'));
  return (
    <button type="button" class="button quiet small" data-part="more-sessions" aria-disabled={more === 'loading'} onClick={() => void load()}>
      {more === 'loading' ? text.common.loading : text.common.more}
    </button>
  );
}

function Results({ search }: { search: SessionSearch }) {
  const state = search.state.value;
  const rows = 'rows' in state ? state.rows : [];
  return (
    <section class="group" data-part="found" aria-busy={state.is === 'searching'}>
      <p class={state.is === 'failed' ? 'error small' : 'small soft'} role="status">{describeResults(search)}</p>
      <RowList rows={rows} query={search.query.value.trim()} />
    </section>
  );
}

function describeResults(search: SessionSearch): string {
  const found = search.state.value;
  switch (found.is) {
    case 'searching':
      return found.isBusy ? text.sessions.searchBusy : text.sessions.searching;
    case 'found':
      return found.hasMore ? text.sessions.foundMore(found.rows.length) : text.sessions.found(found.rows.length);
    case 'failed':
      return found.error;
    default:
      return '';
  }
}

function RowList({ rows, query }: { rows: readonly Session[]; query?: string }) {
  const currentId = route.value.page === 'session' ? route.value.id : undefined;
  return (
    <ul class="plain">
      {rows.map((row) => (
        <SessionRow key={row.id} row={row} isCurrent={row.id === currentId} query={query} />
      ))}
    </ul>
  );
}

function SidebarFooter() {
  const user = currentUser();
  if (!user) return null;
  const page = route.value.page;
  return (
    <div class="side-foot">
      <a class="side-link" href={hrefOf({ page: 'account' })} data-part="account-link" aria-label={text.sessions.myAccount(user.username)} aria-current={page === 'account' ? 'page' : undefined}>
        <Icon name="person" />
        <span>{user.username}</span>
      </a>
      {user.role === 'admin' && (
        <a class="side-link" href={hrefOf({ page: 'admin', section: 'overview' })} data-part="admin-link" aria-current={page === 'admin' ? 'page' : undefined}>
          <Icon name="gear" />
          <span>{text.sessions.administration}</span>
        </a>
      )}
    </div>
  );
}
