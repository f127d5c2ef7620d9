// Users section: the accounts.
import type { Http } from '@switchboard/client';
import { useState } from 'preact/hooks';
import { currentUser, request } from '../auth';
import { Icon } from '../components/icon';
import { RelativeTime } from '../components/relative-time';
import { showToast } from '../components/toast';
import { text } from '../text';
import { AddUserDialog } from './add-user-dialog';
import { Filters, TextFilter } from './filter-fields';
import { userFilter } from './filter-state';
import { InviteLinkDialog } from './invite-link-dialog';
import { restoreFocus } from './restore-focus';
import { PagedTable } from './table';
import type { Column } from './table';
import { UsageDialog } from './usage-dialog';
import { useList, withQuery } from './use-load';
import type { Page } from './use-load';
import { UserChangeDialog } from './user-change-dialog';
import { UserMenu } from './user-menu';
import type { UserChange } from './user-menu';

const strings = text.admin.users;
const PAGE_SIZE = { size: 50, maxPerRequest: 1_000 };

export type User = Http.AccountBody;

/** The open dialog. */
type OpenDialog = { is: 'add' } | { is: 'change'; change: UserChange } | { is: 'usage'; user: User } | { is: 'link'; name: string; link: Http.InviteBody };

const stateOf = (user: User): keyof typeof strings.states => (user.disabled ? 'disabled' : user.invited ? 'invited' : 'active');

async function readPage(from: string | number | undefined, limit: number): Promise<Page<User>> {
  const { users, next } = await request<Http.AccountsBody>('GET', withQuery('/api/admin/users', { after: from, limit }));
  return { items: users, next };
}

/** The API has no search: reads all names and filters them here. */
async function search(part: string): Promise<Page<User>> {
  const items: User[] = [];
  let page: Page<User> | undefined;
  do {
    page = await readPage(page?.next ?? undefined, PAGE_SIZE.maxPerRequest);
    items.push(...page.items.filter(({ username }) => username.includes(part)));
  } while (page.next != null);
  return { items };
}

export function UsersSection() {
  const [open, setOpen] = useState<OpenDialog>();
  const part = userFilter.value.toLowerCase();
  const list = useList((from, limit) => (part ? search(part) : readPage(from, limit)), part, PAGE_SIZE);
  const close = () => setOpen(undefined);
  const done = async (message: string) => {
    close();
    showToast(message);
    await list.reload();
    restoreFocus();
  };
  const showLink = async (name: string, link: Http.InviteBody) => {
    setOpen({ is: 'link', name, link });
    await list.reload();
  };
  const columns = [...COLUMNS, actionsColumn({ onChange: (change) => setOpen({ is: 'change', change }), onUsage: (user) => setOpen({ is: 'usage', user }), onDone: done, onLink: showLink })];
  return (
    <>
      <div class="admin-head">
        <h2 tabIndex={-1}>{text.admin.part.users}</h2>
        <button type="button" class="button" onClick={() => setOpen({ is: 'add' })} data-part="add-user">
          <Icon name="plus" />
          {strings.add}
        </button>
      </div>
      <Filters label={text.admin.table.filter}>
        <TextFilter name="name" label={strings.filter} value={userFilter.value} onChange={(value) => (userFilter.value = value)} />
      </Filters>
      <PagedTable list={list} caption={strings.caption} columns={columns} empty={strings.empty} keyOf={({ id }) => id} rowAttributes={(user) => ({ 'data-user': user.username, 'data-state': stateOf(user), 'data-role': user.role })} />
      {open?.is === 'add' && <AddUserDialog onClose={close} onAdded={(name, link) => (link ? showLink(name, link) : done(strings.added(name)))} />}
      {open?.is === 'change' && <UserChangeDialog change={open.change} onClose={close} onDone={done} />}
      {open?.is === 'usage' && <UsageDialog user={open.user} onClose={close} />}
      {open?.is === 'link' && <InviteLinkDialog name={open.name} link={open.link} onClose={close} />}
    </>
  );
}

const isMe = (user: User) => currentUser()?.id === user.id;

const COLUMNS: readonly Column<User>[] = [
  {
    label: strings.name,
    show: (user) => (
      <>
        {user.username} {isMe(user) && <span class="badge">{strings.you}</span>}
      </>
    ),
  },
  { label: strings.role, show: ({ role }) => <span class={`badge ${role === 'admin' ? 'accent' : ''}`}>{strings.roles[role] ?? role}</span> },
  { label: strings.state, show: (user) => <span class={`badge ${BADGES[stateOf(user)]}`}>{strings.states[stateOf(user)]}</span> },
  { label: strings.since, show: ({ createdAt }) => <RelativeTime at={createdAt} /> },
];

const BADGES = { active: 'good', disabled: 'error', invited: 'warn' };

function actionsColumn(handlers: { onChange: (change: UserChange) => void; onUsage: (user: User) => void; onDone: (message: string) => Promise<void>; onLink: (name: string, link: Http.InviteBody) => Promise<void> }): Column<User> {
  return {
    label: text.admin.table.actions,
    kind: 'actions',
    show: (user) => (isMe(user) ? <span class="soft small admin-own">{strings.own}</span> : <UserMenu user={user} {...handlers} />),
  };
}
