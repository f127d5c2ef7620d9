// The page of somebody who is signed in: the sessions beside what is being done.
import type { ComponentChildren } from 'preact';
import { AccountPage } from './account/page';
import { AdminPage } from './admin/page';
import { Bar } from './bar';
import { place } from './place';
import { Toasts } from './parts/toast';
import { NewSession } from './session/composer/new';
import { SessionPage } from './session/page';
import { Sidebar } from './sessions/sidebar';

export function Workbench() {
  return (
    <div class="workbench">
      <Sidebar />
      <div class="desk">
        <Desk />
      </div>
      <Toasts />
    </div>
  );
}

function Desk() {
  const at = place.value;
  switch (at.page) {
    case 'session':
      return <SessionPage key={at.id} id={at.id} />;
    case 'account':
      return <Paged><AccountPage /></Paged>;
    case 'admin':
      return <Paged><AdminPage /></Paged>;
    default:
      return <Paged><NewSession /></Paged>;
  }
}

function Paged({ children }: { children: ComponentChildren }) {
  return (
    <>
      <Bar />
      <main class="paged">{children}</main>
    </>
  );
}
