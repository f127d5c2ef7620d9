// A link with which somebody sets a password. It is shown once.
import type { Http } from '@switchboard/client';
import { useRef, useState } from 'preact/hooks';
import { Dialog } from '../parts/dialog';
import { Icon } from '../parts/icon';
import { text } from '../text';

const words = text.admin.link;
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'short' });

export function LinkDialog({ name, link, onClose }: { name: string; link: Http.InviteBody; onClose: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const [said, setSaid] = useState('');
  const onCopy = async () => setSaid((await copy(field.current, link.url)) ? words.copied : words.notCopied);
  return (
    <Dialog title={words.title(name)} onClose={onClose}>
      <div data-part="invite-link">
        <p>{words.give(name)}</p>
        <label class="field">
          <span>{words.label}</span>
          <input ref={field} class="input mono" value={link.url} readOnly onFocus={(event) => event.currentTarget.select()} />
        </label>
        <p>
          {words.until} <time dateTime={link.expiresAt}>{moment.format(new Date(link.expiresAt))}</time>.
        </p>
        <p class="soft small">{words.once}</p>
        <p class="status" role="status">{said}</p>
        <div class="dialog-buttons">
          <button type="button" class="button quiet" onClick={onClose}>
            {words.done}
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

/** Browsers have a clipboard for pages over https only; on a plain network the older way is left. */
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
