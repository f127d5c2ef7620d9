// The page of somebody who is signed in: the sessions beside what is being done.
import { computed, effect } from '@preact/signals';
import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { account } from './account';
import { AccountPage } from './account/page';
import { Bar, isDrawerOpen } from './bar';
import { Keys, toPrompt } from './keys';
import { Lookout } from './lookout';
import { dropNotices, Notices } from './notices';
import { allow, isOffered, refuse, watch } from './notify';
import { Toasts } from './parts/toast';
import { place } from './place';
import { NewSession } from './session/composer/new';
import { current } from './session/current';
import { SessionPage } from './session/page';
import { asked, Asked } from './sessions/asked';
import { list } from './sessions/list';
import { followOpen } from './sessions/live';
import { nameOf } from './sessions/naming';
import { dropRename } from './sessions/rename';
import { Sidebar } from './sessions/sidebar';
import { text } from './text';

export function Workbench() {
  useEffect(begin, []);
  const isOpen = isDrawerOpen.value;
  return (
    <div class="workbench">
      <button type="button" class="skip button" onClick={toPrompt}>{text.sessions.toPrompt}</button>
      <Sidebar />
      {isOpen && <div class="shade" onClick={() => (isDrawerOpen.value = false)} />}
      <div class="desk" inert={isOpen}>
        <Notices />
        <Offer />
        <Desk />
      </div>
      <Asked />
      <Keys />
      <Toasts />
    </div>
  );
}

/** Everything that goes on behind the page while somebody is signed in. */
function begin(): () => void {
  const ends = [list.start(), followOpen(), watch(), lookOut(), effect(closeDrawer), effect(nameTab)];
  return () => {
    ends.forEach((end) => end());
    isDrawerOpen.value = false;
    asked.value = undefined;
    dropRename();
    dropNotices();
  };
}

/** Does no session have a line of its own? */
const isQuiet = computed(() => place.value.page !== 'session' || current.value?.connection.value.is === 'ended');

/** A lookout, wherever no session is open. */
function lookOut(): () => void {
  const mine = account();
  return effect(() => {
    if (!isQuiet.value) return;
    const lookout = new Lookout(mine);
    return () => lookout.close();
  });
}

/** Whoever goes somewhere wants to see it. */
function closeDrawer(): void {
  if (place.value) isDrawerOpen.value = false;
}

function nameTab(): void {
  const waiting = list.waiting.value.length;
  document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${titleOf()}`;
}

function titleOf(): string {
  const at = place.value;
  switch (at.page) {
    case 'session':
      return text.common.titled(nameOf(list.row(at.id)));
    case 'account':
      return text.common.titled(text.account.account);
    case 'admin':
      return text.common.titled(text.sessions.administration);
    default:
      return text.common.name;
  }
}

function Desk() {
  const at = place.value;
  switch (at.page) {
    case 'session':
      return <SessionPage key={at.id} id={at.id} />;
    case 'account':
      return <Paged title={text.account.account}><AccountPage /></Paged>;
    case 'admin':
      return <Paged title={text.sessions.administration}><Administration /></Paged>;
    default:
      return <Paged title={text.common.name}><NewSession /></Paged>;
  }
}

/** Fetched when it is opened: most people never do. */
function Administration() {
  const [Page, setPage] = useState<ComponentType>();
  const [isMissing, setMissing] = useState(false);
  useEffect(() => {
    import('./admin/page').then(({ AdminPage }) => setPage(() => AdminPage), () => setMissing(true));
  }, []);
  if (Page) return <Page />;
  return <p class={isMissing ? 'error' : 'soft'} role="status">{isMissing ? text.common.reload : text.common.loading}</p>;
}

/** `title` stands in the bar, where there is one. */
function Paged({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <>
      <Bar isBare>
        <span class="bar-title" aria-hidden="true">{title}</span>
      </Bar>
      <main class="paged">{children}</main>
    </>
  );
}

/** Asks once whether the browser may tell of what happens. */
function Offer() {
  if (!isOffered.value) return null;
  return (
    <div class="offer" data-part="notify-offer" role="status">
      <p>{text.sessions.notify.offer}</p>
      <button type="button" class="button small" onClick={() => void allow()}>{text.sessions.notify.yes}</button>
      <button type="button" class="button quiet small" onClick={refuse}>{text.sessions.notify.no}</button>
    </div>
  );
}
