// Notice section: sends a notice to every connected user.
import type { Http } from '@switchboard/client';
import { useEffect, useState } from 'preact/hooks';
import { request } from '../auth';
import { Icon } from '../components/icon';
import { text } from '../text';
import { AdminConfirmDialog } from './admin-confirm-dialog';
import { changeDraft, draft, restoreDraft } from './notice-draft';
import type { Level } from './notice-draft';

const strings = text.admin.notice;
const MAX_CHARS = 2_000;
const LEVELS = ['info', 'warn', 'error'] as const;

export function NoticeSection() {
  const [isConfirming, setConfirming] = useState(false);
  const [sent, setSent] = useState('');
  useEffect(restoreDraft, []);
  const { message, level } = draft.value;
  // Characters as the gateway counts them, not UTF-16 units.
  const used = [...message].length;
  const isReady = message.trim() !== '' && used <= MAX_CHARS;
  const send = async () => {
    const { connections } = await request<Http.SentBody>('POST', '/api/admin/notices', { message, level });
    changeDraft({ message: '' });
    setConfirming(false);
    setSent(strings.sent(connections));
  };
  const onSubmit = (event: Event) => {
    event.preventDefault();
    setSent('');
    if (isReady) setConfirming(true);
  };
  return (
    <>
      <h2 tabIndex={-1}>{text.admin.part.notice}</h2>
      <p class="soft">{strings.what}</p>
      <form id="notice" class="admin-notice" onSubmit={onSubmit}>
        <MessageField message={message} used={used} />
        <LevelField level={level} />
        <Preview message={message} level={level} />
        <button type="submit" class="button" aria-disabled={!isReady}>
          <Icon name="bell" />
          {strings.send}
        </button>
        <p class="status" role="status">{sent}</p>
      </form>
      {isConfirming && (
        <AdminConfirmDialog title={strings.title} label={strings.send} isHarmless onConfirm={send} onClose={() => setConfirming(false)}>
          <p>{strings.confirm(strings.levels[level])}</p>
          <blockquote class="admin-quote">{message}</blockquote>
        </AdminConfirmDialog>
      )}
    </>
  );
}

function MessageField({ message, used }: { message: string; used: number }) {
  const isTooLong = used > MAX_CHARS;
  return (
    <label class="field">
      <span>{strings.message}</span>
      <textarea class="input" rows={4} value={message} aria-invalid={isTooLong} aria-describedby="notice-counter" onInput={(event) => changeDraft({ message: event.currentTarget.value })} />
      <span id="notice-counter" class={`hint ${isTooLong ? 'admin-bad' : ''}`}>
        {isTooLong ? strings.tooLong(used, MAX_CHARS) : strings.counter(used, MAX_CHARS)}
      </span>
    </label>
  );
}

function LevelField({ level }: { level: Level }) {
  return (
    <fieldset class="admin-choices admin-levels">
      <legend>{strings.level}</legend>
      {LEVELS.map((name) => (
        <label class="admin-choice" key={name}>
          <input type="radio" name="level" value={name} checked={level === name} onChange={() => changeDraft({ level: name })} />
          <span>{strings.levels[name]}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** As shown at the top of the page, without the close button. */
function Preview({ message, level }: { message: string; level: Level }) {
  return (
    <figure class="admin-preview">
      <figcaption>{strings.preview}</figcaption>
      {message.trim() === '' ? (
        <p class="soft">{strings.nothing}</p>
      ) : (
        <div class={`notice ${level}`}>
          <p>
            <strong>{text.sessions.notice[level]}:</strong> {message}
          </p>
        </div>
      )}
    </figure>
  );
}
