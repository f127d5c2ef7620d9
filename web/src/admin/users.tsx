// Who may come in.
import type { Http } from '@switchboard/client';
import { useState } from 'preact/hooks';
import { request, standing } from '../account';
import { Icon } from '../parts/icon';
import { say } from '../parts/toast';
import { When } from '../parts/when';
import { text } from '../text';
import { keepFocus } from './confirm';
import { Filters, TextFilter } from './filters';
import { LinkDialog } from './link';
import { ask, useList } from './load';
import type { Page } from './load';
import { nameFilter } from './narrowed';
import { List } from './table';
import type { Column } from './table';
import { AddUser } from './user-add';
import { UserDialog } from './user-dialog';
import { UserMenu } from './user-menu';
import type { Asked } from './user-menu';

const words = text.admin.users;
const PACE = { size: 50, most: 1_000 };

export type User = Http.AccountBody;

/** What is to be shown above the list. */
type Open = { is: 'add' } | { is: 'ask'; asked: Asked } | { is: 'link'; name: string; link: Http.InviteBody };

/** How an account stands, in one word. */
export const stateOf = (user: User): keyof typeof words.states => (user.disabled ? 'disabled' : user.invited ? 'invited' : 'active');

async function read(from: string | number | undefined, limit: number): Promise<Page<User>> {
  const { users, next } = await request<Http.AccountsBody>('GET', ask('/api/admin/users', { after: from, limit }));
  return { items: users, next };
}

/** The gateway lists by name and does not search; so all names are read, and those that fit are shown. */
async function search(part: string): Promise<Page<User>> {
  const items: User[] = [];
  let page: Page<User> | undefined;
  do {
    page = await read(page?.next ?? undefined, PACE.most);
    items.push(...page.items.filter(({ username }) => username.includes(part)));
  } while (page.next != null);
  return { items };
}

export function UsersPart() {
  const [open, setOpen] = useState<Open>();
  const part = nameFilter.value.toLowerCase();
  const list = useList((from, limit) => (part ? search(part) : read(from, limit)), part, PACE);
  const close = () => setOpen(undefined);
  const done = async (said: string) => {
    close();
    say(said);
    await list.reload();
    keepFocus();
  };
  const showLink = async (name: string, link: Http.InviteBody) => {
    setOpen({ is: 'link', name, link });
    await list.reload();
  };
  const columns = [...COLUMNS, actions({ onAsk: (asked) => setOpen({ is: 'ask', asked }), onDone: done, onLink: showLink })];
  return (
    <>
      <div class="admin-head">
        <h2 tabIndex={-1}>{text.admin.part.users}</h2>
        <button type="button" class="button" onClick={() => setOpen({ is: 'add' })} data-part="add-user">
          <Icon name="plus" />
          {words.add}
        </button>
      </div>
      <Filters label={text.admin.table.filter}>
        <TextFilter name="name" label={words.filter} value={nameFilter.value} onChange={(value) => (nameFilter.value = value)} />
      </Filters>
      <List list={list} caption={words.caption} columns={columns} empty={words.empty} keyOf={({ id }) => id} mark={(user) => ({ 'data-user': user.username, 'data-state': stateOf(user), 'data-role': user.role })} />
      {open?.is === 'add' && <AddUser onClose={close} onAdded={(name, link) => (link ? showLink(name, link) : done(words.added(name)))} />}
      {open?.is === 'ask' && <UserDialog asked={open.asked} onClose={close} onDone={done} />}
      {open?.is === 'link' && <LinkDialog name={open.name} link={open.link} onClose={close} />}
    </>
  );
}

const isMe = (user: User) => standing.value.is === 'in' && standing.value.user.id === user.id;

const COLUMNS: readonly Column<User>[] = [
  {
    label: words.name,
    show: (user) => (
      <>
        {user.username} {isMe(user) && <span class="badge">{words.you}</span>}
      </>
    ),
  },
  { label: words.role, show: ({ role }) => <span class={`badge ${role === 'admin' ? 'accent' : ''}`}>{words.roles[role] ?? role}</span> },
  { label: words.state, show: (user) => <span class={`badge ${BADGES[stateOf(user)]}`}>{words.states[stateOf(user)]}</span> },
  { label: words.since, show: ({ createdAt }) => <When at={createdAt} /> },
];

const BADGES = { active: 'good', disabled: 'error', invited: 'warn' };

function actions(given: { onAsk: (asked: Asked) => void; onDone: (said: string) => Promise<void>; onLink: (name: string, link: Http.InviteBody) => Promise<void> }): Column<User> {
  return {
    label: text.admin.table.actions,
    kind: 'actions',
    show: (user) => (isMe(user) ? <span class="soft small admin-own">{words.own}</span> : <UserMenu user={user} {...given} />),
  };
}
