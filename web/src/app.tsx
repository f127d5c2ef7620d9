// App: chooses between the sign-in pages and the app shell.
import { AppShell } from './app-shell';
import { authState } from './auth';
import { ConnectingPage, UnreachablePage } from './auth/connecting-page';
import { InvitePage } from './auth/invite-page';
import { LoginPage } from './auth/login-page';
import { SetupPage } from './auth/setup-page';
import { entryPage } from './route';

export function App() {
  const state = authState.value;
  if (state.is === 'in') return <AppShell key={state.user.id} />;
  if (entryPage.value === 'setup') return <SetupPage />;
  if (entryPage.value === 'invite') return <InvitePage />;
  switch (state.is) {
    case 'starting':
      return <ConnectingPage />;
    case 'unreachable':
      return <UnreachablePage reason={state.reason} />;
    default:
      return <LoginPage notice={state.reason} username={state.username} />;
  }
}
