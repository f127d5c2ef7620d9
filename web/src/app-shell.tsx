// App shell: the page of a signed-in user, with the session list beside the current page.
import { computed, effect } from '@preact/signals';
import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { AccountPage } from './account/account-page';
import { account } from './auth';
import { disableNotifications, enableNotifications, isOffered, watchSessions } from './browser-notifications';
import { Toasts } from './components/toast';
import { focusPrompt, KeyboardShortcuts } from './keyboard-shortcuts';
import { clearNotices, Notices } from './notices';
import { NoticesSocket } from './notices-socket';
import { route } from './route';
import { currentSession } from './session/current-session';
import { NewSessionPage } from './session/new-session-page';
import { SessionPage } from './session/session-page';
import { cancelRename } from './sessions/rename-field';
import { openDialog, SessionDialogs } from './sessions/session-dialogs';
import { sessionList } from './sessions/session-list';
import { sessionName } from './sessions/session-name';
import { Sidebar } from './sessions/sidebar';
import { syncOpenSession } from './sessions/sync-open-session';
import { text } from './text';
import { isDrawerOpen, TopBar } from './top-bar';

export function AppShell() {
  useEffect(startBackgroundWork, []);
  const isOpen = isDrawerOpen.value;
  return (
    <div class="app-shell">
      <button type="button" class="skip button" onClick={focusPrompt}>{text.sessions.toPrompt}</button>
      <Sidebar />
      {isOpen && <div class="drawer-backdrop" onClick={() => (isDrawerOpen.value = false)} />}
      <div class="main-column" inert={isOpen}>
        <Notices />
        <NotificationOffer />
        <CurrentPage />
      </div>
      <SessionDialogs />
      <KeyboardShortcuts />
      <Toasts />
    </div>
  );
}

/** Starts everything that runs while a user is signed in. */
function startBackgroundWork(): () => void {
  const stops = [sessionList.start(), syncOpenSession(), watchSessions(), openNoticesSocket(), effect(closeDrawerOnNavigation), effect(updateTabTitle)];
  return () => {
    stops.forEach((stop) => stop());
    isDrawerOpen.value = false;
    openDialog.value = undefined;
    cancelRename();
    clearNotices();
  };
}

/** Whether no open session has a connection of its own. */
const hasNoSessionConnection = computed(() => route.value.page !== 'session' || currentSession.value?.connection.value.is === 'ended');

/** Keeps a notices socket open while no session is. */
function openNoticesSocket(): () => void {
  const current = account();
  return effect(() => {
    if (!hasNoSessionConnection.value) return;
    const socket = new NoticesSocket(current);
    return () => socket.close();
  });
}

/** Navigating closes the drawer, so that the new page is visible. */
function closeDrawerOnNavigation(): void {
  if (route.value) isDrawerOpen.value = false;
}

function updateTabTitle(): void {
  const waiting = sessionList.waiting.value.length;
  document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${pageTitle()}`;
}

function pageTitle(): string {
  const current = route.value;
  switch (current.page) {
    case 'session':
      return text.common.titled(sessionName(sessionList.row(current.id)));
    case 'account':
      return text.common.titled(text.account.account);
    case 'admin':
      return text.common.titled(text.sessions.administration);
    default:
      return text.common.name;
  }
}

function CurrentPage() {
  const current = route.value;
  switch (current.page) {
    case 'session':
      return <SessionPage key={current.id} id={current.id} />;
    case 'account':
      return <PageFrame title={text.account.account}><AccountPage /></PageFrame>;
    case 'admin':
      return <PageFrame title={text.sessions.administration}><LazyAdminPage /></PageFrame>;
    default:
      return <PageFrame title={text.common.name}><NewSessionPage /></PageFrame>;
  }
}

/** Loaded on first use: most users never open it. */
function LazyAdminPage() {
  const [Page, setPage] = useState<ComponentType>();
  const [isMissing, setMissing] = useState(false);
  useEffect(() => {
    import('./admin/admin-page').then(({ AdminPage }) => setPage(() => AdminPage), () => setMissing(true));
  }, []);
  if (Page) return <Page />;
  return <p class={isMissing ? 'error' : 'soft'} role="status">{isMissing ? text.common.reload : text.common.loading}</p>;
}

/** `title` is shown in the top bar on narrow pages. */
function PageFrame({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <>
      <TopBar isBare>
        <span class="bar-title" aria-hidden="true">{title}</span>
      </TopBar>
      <main class="paged">{children}</main>
    </>
  );
}

/** Offers browser notifications once. */
function NotificationOffer() {
  if (!isOffered.value) return null;
  return (
    <div class="offer" data-part="notify-offer" role="status">
      <p>{text.sessions.notify.offer}</p>
      <button type="button" class="button small" onClick={() => void enableNotifications()}>{text.sessions.notify.yes}</button>
      <button type="button" class="button quiet small" onClick={disableNotifications}>{text.sessions.notify.no}</button>
    </div>
  );
}
