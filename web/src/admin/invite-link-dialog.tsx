// Invite link dialog: shows a password link, once.
import type { Http } from '@switchboard/client';
import { useRef, useState } from 'preact/hooks';
import { Dialog } from '../components/dialog';
import { Icon } from '../components/icon';
import { text } from '../text';

const strings = text.admin.link;
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'short' });

export function InviteLinkDialog({ name, link, onClose }: { name: string; link: Http.InviteBody; onClose: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const [copyStatus, setCopyStatus] = useState('');
  const onCopy = async () => setCopyStatus((await copy(field.current, link.url)) ? strings.copied : strings.notCopied);
  return (
    <Dialog title={strings.title(name)} onClose={onClose}>
      <div data-part="invite-link">
        <p>{strings.give(name)}</p>
        <label class="field">
          <span>{strings.label}</span>
          <input ref={field} class="input mono" value={link.url} readOnly onFocus={(event) => event.currentTarget.select()} />
        </label>
        <p>
          {strings.until} <time dateTime={link.expiresAt}>{moment.format(new Date(link.expiresAt))}</time>.
        </p>
        <p class="soft small">{strings.once}</p>
        <p class="status" role="status">{copyStatus}</p>
        <div class="dialog-buttons">
          <button type="button" class="button quiet" onClick={onClose}>
            {strings.done}
          </button>
          <button type="button" class="button" onClick={() => void onCopy()} data-part="copy-link">
            <Icon name="copy" />
            {text.common.copy}
          </button>
        </div>
      </div>
    </Dialog>
  );
}

/**
 * The clipboard API needs https. The fallback copies from the visible field: outside of the modal dialog
 * nothing can be focused.
 */
async function copy(field: HTMLInputElement | null, link: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(link);
    return true;
  } catch {
    field?.focus();
    field?.select();
    return document.execCommand('copy');
  }
}
