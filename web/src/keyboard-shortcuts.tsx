// Keyboard shortcuts: single keys that work while no field has the focus, and their help.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Dialog } from './components/dialog';
import { readLocal, writeLocal } from './local-storage';
import { navigate, route } from './route';
import { sessionList } from './sessions/session-list';
import { text } from './text';
import { isDrawerOpen } from './top-bar';

const SETTING_KEY = 'switchboard-single-keys';
const isHelpOpen = signal(false);
/** Can be switched off, for speech input and accidental key presses. */
const isEnabled = signal(readLocal(SETTING_KEY) !== 'off');

function setEnabled(on: boolean): void {
  isEnabled.value = on;
  writeLocal(SETTING_KEY, on ? 'on' : 'off');
}

/** Selects the session `by` positions further in the list as shown. */
function selectSession(by: number): void {
  const current = route.value;
  const rows = [...document.querySelectorAll<HTMLElement>('[data-part=sessions] [data-session]')].flatMap(({ dataset }) => dataset['session'] ?? []);
  const currentIndex = current.page === 'session' ? rows.indexOf(current.id) : by > 0 ? -1 : rows.length;
  const id = rows[currentIndex + by];
  if (id) navigate({ page: 'session', id });
}

function selectWaiting(): void {
  const ids = sessionList.waiting.value.map((row) => row.id);
  const current = route.value;
  const id = ids[(ids.indexOf(current.page === 'session' ? current.id : '') + 1) % ids.length];
  if (id) navigate({ page: 'session', id });
}

/** Focuses the prompt box, if the page has one. */
export function focusPrompt(): void {
  document.querySelector<HTMLElement>('#prompt')?.focus();
}

function focusSearch(): void {
  if (getComputedStyle(document.querySelector('.side') ?? document.body).visibility === 'hidden') isDrawerOpen.value = true;
  requestAnimationFrame(() => document.querySelector<HTMLElement>('#search')?.focus());
}

const SHORTCUTS: Record<string, { action: () => void; label: string }> = {
  '?': { action: () => (isHelpOpen.value = true), label: text.sessions.keys.help },
  n: { action: () => navigate({ page: 'new' }), label: text.sessions.keys.create },
  p: { action: focusPrompt, label: text.sessions.keys.prompt },
  '/': { action: focusSearch, label: text.sessions.keys.search },
  j: { action: () => selectSession(1), label: text.sessions.keys.next },
  k: { action: () => selectSession(-1), label: text.sessions.keys.previous },
  w: { action: selectWaiting, label: text.sessions.keys.waiting },
};

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches('input, textarea, select'));
}

/** Handles the keys and shows the help. Mount once. */
export function KeyboardShortcuts() {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const key = SHORTCUTS[event.key];
      if (!key || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (!isEnabled.value || document.querySelector('dialog[open], .menu')) return;
      event.preventDefault();
      key.action();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
  return isHelpOpen.value ? <ShortcutHelp onClose={() => (isHelpOpen.value = false)} /> : null;
}

export function openShortcutHelp(): void {
  isHelpOpen.value = true;
}

function ShortcutHelp({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title={text.sessions.shortcuts} onClose={onClose}>
      <p class="small soft">{text.sessions.shortcutHelp}</p>
      <dl class="keys">
        {[...Object.entries(SHORTCUTS).map(([key, { label }]) => [key, label] as const), ...text.sessions.otherKeys].map(([key, label]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input type="checkbox" checked={isEnabled.value} onChange={(event) => setEnabled(event.currentTarget.checked)} /> {text.sessions.singleKeys}
      </label>
      <div class="dialog-buttons">
        <button type="button" class="button quiet" onClick={onClose}>{text.common.close}</button>
      </div>
    </Dialog>
  );
}
