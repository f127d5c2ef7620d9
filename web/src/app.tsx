// Which page is shown: a door before signing in, the workbench after it.
import { standing } from './account';
import { Invite } from './account/invite';
import { Login } from './account/login';
import { Setup } from './account/setup';
import { Unreachable, Waiting } from './account/waiting';
import { door } from './place';
import { Workbench } from './workbench';

export function App() {
  const now = standing.value;
  if (now.is === 'in') return <Workbench key={now.user.id} />;
  if (door.value === 'setup') return <Setup />;
  if (door.value === 'invite') return <Invite />;
  switch (now.is) {
    case 'starting':
      return <Waiting />;
    case 'unreachable':
      return <Unreachable why={now.why} />;
    default:
      return <Login why={now.why} username={now.username} />;
  }
}
