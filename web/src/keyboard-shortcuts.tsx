// What the keyboard does while no field has the focus, and the help that lists it.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { isDrawerOpen } from './bar';
import { Dialog } from './parts/dialog';
import { go, place } from './place';
import { list } from './sessions/list';
import { text } from './text';

const KEY = 'switchboard-single-keys';
const isHelpOpen = signal(false);
/** Whoever speaks to the computer, or hits keys by chance, can switch them off. */
const isOn = signal(read());

function read(): boolean {
  try {
    return localStorage.getItem(KEY) !== 'off';
  } catch {
    return true;
  }
}

function set(on: boolean): void {
  isOn.value = on;
  try {
    localStorage.setItem(KEY, on ? 'on' : 'off');
  } catch {
    // Storage is switched off: until the page is closed, then.
  }
}

/** To the session `step` places on, as the list shows them. */
function step(by: number): void {
  const at = place.value;
  const rows = [...document.querySelectorAll<HTMLElement>('[data-part=sessions] [data-session]')].flatMap(({ dataset }) => dataset['session'] ?? []);
  const now = at.page === 'session' ? rows.indexOf(at.id) : by > 0 ? -1 : rows.length;
  const id = rows[now + by];
  if (id) go({ page: 'session', id });
}

function toWaiting(): void {
  const ids = list.waiting.value.map((row) => row.id);
  const at = place.value;
  const id = ids[(ids.indexOf(at.page === 'session' ? at.id : '') + 1) % ids.length];
  if (id) go({ page: 'session', id });
}

/** Puts the focus into the prompt box, if the page has one. */
export function toPrompt(): void {
  document.querySelector<HTMLElement>('#prompt')?.focus();
}

function toSearch(): void {
  if (getComputedStyle(document.querySelector('.side') ?? document.body).visibility === 'hidden') isDrawerOpen.value = true;
  requestAnimationFrame(() => document.querySelector<HTMLElement>('#search')?.focus());
}

const KEYS: Record<string, { does: () => void; words: string }> = {
  '?': { does: () => (isHelpOpen.value = true), words: text.sessions.keys.help },
  n: { does: () => go({ page: 'new' }), words: text.sessions.keys.create },
  p: { does: toPrompt, words: text.sessions.keys.prompt },
  '/': { does: toSearch, words: text.sessions.keys.search },
  j: { does: () => step(1), words: text.sessions.keys.next },
  k: { does: () => step(-1), words: text.sessions.keys.previous },
  w: { does: toWaiting, words: text.sessions.keys.waiting },
};

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches('input, textarea, select'));
}

/** Listens, and shows the help when it is asked for. Once in the page. */
export function Keys() {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const key = KEYS[event.key];
      if (!key || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (!isOn.value || document.querySelector('dialog[open], .menu')) return;
      event.preventDefault();
      key.does();
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, []);
  return isHelpOpen.value ? <Help onClose={() => (isHelpOpen.value = false)} /> : null;
}

/** Shows the help. */
export function openHelp(): void {
  isHelpOpen.value = true;
}

function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title={text.sessions.shortcuts} onClose={onClose}>
      <p class="small soft">{text.sessions.shortcutHelp}</p>
      <dl class="keys">
        {Object.entries(KEYS).map(([key, { words }]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
        {text.sessions.otherKeys.map(([key, words]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input type="checkbox" checked={isOn.value} onChange={(event) => set(event.currentTarget.checked)} /> {text.sessions.singleKeys}
      </label>
      <div class="dialog-buttons">
        <button type="button" class="button quiet" onClick={onClose}>{text.common.close}</button>
      </div>
    </Dialog>
  );
}
