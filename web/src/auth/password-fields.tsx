// Fields for passwords.
import { useState } from 'preact/hooks';
import { Complaint, valueOf } from '../parts/form';
import { text } from '../text';

const MIN_CHARS = 8;

/** Characters as a person counts them, not UTF-16 units. */
const missing = (password: string): number => MIN_CHARS - [...password].length;

/** The types know of no field that is now this and now that. */
const kindOf = (isShown: boolean) => (isShown ? 'text' : 'password') as 'password';

/** One password that exists already. */
export function PasswordField({ id, name = id, label, isShown }: { id: string; name?: string; label: string; isShown: boolean }) {
  return (
    <label class="field">
      <span>{label}</span>
      <input class="input" id={id} name={name} type={kindOf(isShown)} autocomplete="current-password" required />
    </label>
  );
}

/** The box that makes passwords readable. */
export function ShowBox({ label, isShown, onChange }: { label: string; isShown: boolean; onChange: (isShown: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={isShown} onChange={(event) => onChange(event.currentTarget.checked)} /> {label}
    </label>
  );
}

/** A new password, twice, with hints while it is typed. Fields `password` and `repeat`. */
export function NewPassword({ labels, isShown, prefix = '' }: { labels: { password: string; repeat: string }; isShown: boolean; prefix?: string }) {
  const [password, setPassword] = useState('');
  const [repeat, setRepeat] = useState('');
  const kind = kindOf(isShown);
  const length = lengthHint(password);
  const same = repeatHint(password, repeat);
  return (
    <>
      <div class="field">
        <label for={`${prefix}password`}>{labels.password}</label>
        <input class="input" id={`${prefix}password`} name="password" type={kind} autocomplete="new-password" aria-describedby={`${prefix}password-hint`} required value={password} onInput={(event) => setPassword(event.currentTarget.value)} />
        <Hint id={`${prefix}password-hint`} {...length} />
      </div>
      <div class="field">
        <label for={`${prefix}repeat`}>{labels.repeat}</label>
        <input class="input" id={`${prefix}repeat`} name="repeat" type={kind} autocomplete="new-password" aria-describedby={`${prefix}repeat-hint`} required value={repeat} onInput={(event) => setRepeat(event.currentTarget.value)} />
        <Hint id={`${prefix}repeat-hint`} {...same} />
      </div>
    </>
  );
}

function Hint({ id, words, isGood }: { id: string; words: string; isGood: boolean }) {
  return (
    <span id={id} class={`hint ${isGood ? 'good' : ''}`}>
      {words}
    </span>
  );
}

function lengthHint(password: string) {
  const more = missing(password);
  if (password === '') return { words: text.account.minChars(MIN_CHARS), isGood: false };
  return more > 0 ? { words: text.account.charsMissing(MIN_CHARS, more), isGood: false } : { words: text.account.longEnough, isGood: true };
}

function repeatHint(password: string, repeat: string) {
  if (repeat !== '' && password === repeat) return { words: text.account.same, isGood: true };
  // Half a word is not a mistake yet.
  return { words: password.startsWith(repeat) ? text.account.onceMore : text.account.notSame, isGood: false };
}

/** The new password in a form, or what is wrong with it. */
export function newPasswordIn(form: HTMLFormElement): string {
  const password = valueOf(form, 'password');
  if (missing(password) > 0) throw new Complaint(text.account.tooShort(MIN_CHARS), 'password');
  if (password !== valueOf(form, 'repeat')) throw new Complaint(text.account.notSameError, 'repeat');
  return password;
}
