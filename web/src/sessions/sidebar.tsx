import { signal } from '@preact/signals';
import type { Http } from '@switchboard/client';
import { useEffect } from 'preact/hooks';
import { request, signOut, standing } from '../account';
import { address, place } from '../place';
import { text } from '../text';
const rows = signal<readonly Http.SessionBody[]>([]);
export function Sidebar() {
  const at = place.value;
  useEffect(() => {
    const load = () => void request<Http.SessionsBody>('GET', '/api/sessions?limit=50').then((page) => (rows.value = page.sessions), () => {});
    load();
    const timer = setInterval(load, 3000);
    return () => clearInterval(timer);
  }, []);
  const now = standing.value;
  return (
    <nav class="side">
      <p class="brand">{text.common.name}</p>
      <a class="button" data-part="new-session" href={address({ page: 'new' })}>{text.sessions.create}</a>
      <ul class="plain" data-part="sessions">
        {rows.value.map((row) => (
          <li key={row.id} data-session={row.id} data-status={row.status}>
            <a href={address({ page: 'session', id: row.id })} aria-current={at.page === 'session' && at.id === row.id ? 'page' : undefined}>{row.title ?? row.lastUserMessage ?? row.id}</a>
          </li>
        ))}
      </ul>
      <a href={address({ page: 'account' })}>{now.is === 'in' ? now.user.username : ''}</a>
      {now.is === 'in' && now.user.role === 'admin' && <a href={address({ page: 'admin', part: 'overview' })}>{text.sessions.administration}</a>}
      <button class="button quiet" onClick={() => void signOut()}>{text.account.logOut}</button>
    </nav>
  );
}
