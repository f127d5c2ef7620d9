// Usage dialog: what an account stores and sends, and may.
import type { Http } from '@switchboard/client';
import { request } from '../auth';
import { Dialog } from '../components/dialog';
import { UsageList } from '../components/usage-list';
import { text } from '../text';
import { LoadError } from './table';
import { useLoad } from './use-load';
import type { User } from './users';

const POLL_MS = 5_000;

export function UsageDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const usage = useLoad(() => request<Http.UsageBody>('GET', `/api/admin/users/${user.id}/usage`), user.id, POLL_MS);
  return (
    <Dialog title={text.admin.users.usageOf(user.username)} onClose={onClose}>
      <div data-part="usage">
        <LoadError loaded={usage} />
        {usage.data ? <UsageList usage={usage.data} /> : usage.isLoading && <p class="soft">{text.common.loading}</p>}
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onClose}>
            {text.common.close}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
