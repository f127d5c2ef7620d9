// A word to everybody who is connected.
import type { Http } from '@switchboard/client';
import { useEffect, useState } from 'preact/hooks';
import { request } from '../account';
import { Icon } from '../parts/icon';
import { text } from '../text';
import { Confirm } from './confirm';
import { draft, recall, write } from './draft';
import type { Level } from './draft';

const words = text.admin.notice;
const MOST = 2_000;
const LEVELS = ['info', 'warn', 'error'] as const;

export function NoticePart() {
  const [isAsking, setAsking] = useState(false);
  const [sent, setSent] = useState('');
  useEffect(recall, []);
  const { message, level } = draft.value;
  // As the gateway counts: characters, not the units that JavaScript has for them.
  const used = [...message].length;
  const isReady = message.trim() !== '' && used <= MOST;
  const send = async () => {
    const { connections } = await request<Http.SentBody>('POST', '/api/admin/notices', { message, level });
    write({ message: '' });
    setAsking(false);
    setSent(words.sent(connections));
  };
  const onSubmit = (event: Event) => {
    event.preventDefault();
    setSent('');
    if (isReady) setAsking(true);
  };
  return (
    <>
      <h2 tabIndex={-1}>{text.admin.part.notice}</h2>
      <p class="soft">{words.what}</p>
      <form id="notice" class="admin-notice" onSubmit={onSubmit}>
        <Message message={message} used={used} />
        <Levels level={level} />
        <Preview message={message} level={level} />
        <button type="submit" class="button" aria-disabled={!isReady}>
          <Icon name="bell" />
          {words.send}
        </button>
        <p class="status" role="status">{sent}</p>
      </form>
      {isAsking && (
        <Confirm title={words.title} action={words.send} isHarmless onDo={send} onClose={() => setAsking(false)}>
          <p>{words.confirm(words.levels[level])}</p>
          <blockquote class="admin-quote">{message}</blockquote>
        </Confirm>
      )}
    </>
  );
}

function Message({ message, used }: { message: string; used: number }) {
  const isTooLong = used > MOST;
  return (
    <label class="field">
      <span>{words.message}</span>
      <textarea class="input" rows={4} value={message} aria-invalid={isTooLong} aria-describedby="notice-counter" onInput={(event) => write({ message: event.currentTarget.value })} />
      <span id="notice-counter" class={`hint ${isTooLong ? 'admin-bad' : ''}`}>
        {isTooLong ? words.tooLong(used, MOST) : words.counter(used, MOST)}
      </span>
    </label>
  );
}

function Levels({ level }: { level: Level }) {
  return (
    <fieldset class="admin-choices admin-levels">
      <legend>{words.level}</legend>
      {LEVELS.map((name) => (
        <label class="admin-choice" key={name}>
          <input type="radio" name="level" value={name} checked={level === name} onChange={() => write({ level: name })} />
          <span>{words.levels[name]}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** As the page shows a notice at its top, without the button that closes it. */
function Preview({ message, level }: { message: string; level: Level }) {
  return (
    <figure class="admin-preview">
      <figcaption>{words.preview}</figcaption>
      {message.trim() === '' ? (
        <p class="soft">{words.nothing}</p>
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
