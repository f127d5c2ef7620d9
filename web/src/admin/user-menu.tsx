// User menu: the actions for one account.
import type { Http } from '@switchboard/client';
import { request } from '../auth';
import { Icon } from '../components/icon';
import { Menu, MenuItem } from '../components/menu';
import { useToastedAction } from '../components/use-action';
import { navigate } from '../route';
import { text } from '../text';
import { ALL_AUDIT_ENTRIES, ALL_CONNECTIONS, ALL_SESSIONS, auditFilter, connectionFilter, sessionFilter } from './filter-state';
import type { User } from './users';

const strings = text.admin.users;

/** A change that must be confirmed. */
export interface UserChange {
  user: User;
  kind: 'role' | 'disable' | 'remove';
}

interface UserMenuProps {
  user: User;
  onChange: (asked: UserChange) => void;
  onUsage: (user: User) => void;
  /** `message`: what was done. */
  onDone: (message: string) => Promise<void>;
  onLink: (name: string, link: Http.InviteBody) => Promise<void>;
}

/** Harmless actions run at once, the others ask first. */
export function UserMenu({ user, onChange, onUsage, onDone, onLink }: UserMenuProps) {
  const path = `/api/admin/users/${user.id}`;
  const link = useToastedAction(async () => onLink(user.username, await request<Http.InviteBody>('POST', `${path}/invite`)));
  const enable = useToastedAction(async () => {
    await request('PATCH', path, { disabled: false });
    await onDone(strings.enabled(user.username));
  });
  return (
    <Menu button={<Icon name="dots" />} label={strings.actions(user.username)} part="user-actions">
      {(close) => {
        const item = (label: string, part: string, action: () => void, isDangerous = false) => (
          <MenuItem part={part} isDangerous={isDangerous} onChoose={() => (close(), action())}>
            {label}
          </MenuItem>
        );
        return (
          <>
            {item(strings.seeSessions, 'see-sessions', () => seeSessions(user))}
            {item(strings.seeConnections, 'see-connections', () => seeConnections(user))}
            {item(strings.seeActs, 'see-acts', () => seeActs(user))}
            {item(strings.seeUsage, 'see-usage', () => onUsage(user))}
            <hr class="admin-rule" />
            {item(user.role === 'admin' ? strings.makeMember : strings.makeAdmin, 'role', () => onChange({ user, kind: 'role' }))}
            {item(user.invited ? strings.invite : strings.reset, 'reset', link.run)}
            {user.disabled ? item(strings.enable, 'enable', enable.run) : item(strings.disable, 'disable', () => onChange({ user, kind: 'disable' }), true)}
            {item(strings.remove, 'remove', () => onChange({ user, kind: 'remove' }), true)}
          </>
        );
      }}
    </Menu>
  );
}

function seeSessions({ username }: User): void {
  sessionFilter.value = { ...ALL_SESSIONS, user: username };
  navigate({ page: 'admin', section: 'sessions' });
}

function seeConnections({ username }: User): void {
  connectionFilter.value = { ...ALL_CONNECTIONS, user: username };
  navigate({ page: 'admin', section: 'connections' });
}

function seeActs({ username }: User): void {
  auditFilter.value = { ...ALL_AUDIT_ENTRIES, actor: username };
  navigate({ page: 'admin', section: 'audit' });
}
