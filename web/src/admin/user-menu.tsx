// What can be done with one account.
import type { Http } from '@switchboard/client';
import { explain, request } from '../account';
import { Icon } from '../parts/icon';
import { Menu, MenuItem } from '../parts/menu';
import { say } from '../parts/toast';
import { go } from '../place';
import { text } from '../text';
import { useAct } from './confirm';
import { ALL_ACTS, EVERYBODY, NO_FILTER, actFilter, connectionFilter, sessionFilter } from './narrowed';
import type { User } from './users';

const words = text.admin.users;

/** Something that is asked about before it is done. */
export interface Asked {
  user: User;
  what: 'role' | 'disable' | 'remove';
}

interface UserMenuProps {
  user: User;
  onAsk: (asked: Asked) => void;
  /** It is done; `said` are the words for it. */
  onDone: (said: string) => Promise<void>;
  onLink: (name: string, link: Http.InviteBody) => Promise<void>;
}

/** What harms nobody is done at once, everything else is asked about. */
export function UserMenu({ user, onAsk, onDone, onLink }: UserMenuProps) {
  const path = `/api/admin/users/${user.id}`;
  const link = useLoud(async () => onLink(user.username, await request<Http.InviteBody>('POST', `${path}/invite`)));
  const enable = useLoud(async () => {
    await request('PATCH', path, { disabled: false });
    await onDone(words.enabled(user.username));
  });
  return (
    <Menu button={<Icon name="dots" />} label={words.actions(user.username)} part="user-actions">
      {(close) => {
        const item = (label: string, part: string, act: () => void, isDangerous = false) => (
          <MenuItem part={part} isDangerous={isDangerous} onChoose={() => (close(), act())}>
            {label}
          </MenuItem>
        );
        return (
          <>
            {item(words.seeSessions, 'see-sessions', () => seeSessions(user))}
            {item(words.seeConnections, 'see-connections', () => seeConnections(user))}
            {item(words.seeActs, 'see-acts', () => seeActs(user))}
            <hr class="admin-rule" />
            {item(user.role === 'admin' ? words.makeMember : words.makeAdmin, 'role', () => onAsk({ user, what: 'role' }))}
            {item(user.invited ? words.invite : words.reset, 'reset', link)}
            {user.disabled ? item(words.enable, 'enable', enable) : item(words.disable, 'disable', () => onAsk({ user, what: 'disable' }), true)}
            {item(words.remove, 'remove', () => onAsk({ user, what: 'remove' }), true)}
          </>
        );
      }}
    </Menu>
  );
}

/** Done from a menu, which has no line of its own for what went wrong. */
function useLoud(act: () => Promise<void>): () => void {
  const { run } = useAct(() => act().catch((error: unknown) => say(explain(error), 'error')));
  return () => void run();
}

function seeSessions({ username }: User): void {
  sessionFilter.value = { ...NO_FILTER, user: username };
  go({ page: 'admin', part: 'sessions' });
}

function seeConnections({ username }: User): void {
  connectionFilter.value = { ...EVERYBODY, user: username };
  go({ page: 'admin', part: 'connections' });
}

function seeActs({ username }: User): void {
  actFilter.value = { ...ALL_ACTS, actor: username };
  go({ page: 'admin', part: 'audit' });
}
