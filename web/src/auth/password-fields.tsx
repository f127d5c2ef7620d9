// Password fields: inputs for existing and new passwords.
import { useState } from 'preact/hooks';
import { FieldError, valueOf } from '../components/form';
import { text } from '../text';

const MIN_CHARS = 8;

/** Characters, not UTF-16 units. */
const missingChars = (password: string): number => MIN_CHARS - [...password].length;

/** Preact's types do not allow a type that changes. */
const inputType = (isShown: boolean) => (isShown ? 'text' : 'password') as 'password';

/** An existing password. */
export function PasswordField({ id, name = id, label, isShown }: { id: string; name?: string; label: string; isShown: boolean }) {
  return (
    <label class="field">
      <span>{label}</span>
      <input class="input" id={id} name={name} type={inputType(isShown)} autocomplete="current-password" required />
    </label>
  );
}

/** The checkbox that makes passwords readable. */
export function ShowPasswordBox({ label, isShown, onChange }: { label: string; isShown: boolean; onChange: (isShown: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={isShown} onChange={(event) => onChange(event.currentTarget.checked)} /> {label}
    </label>
  );
}

/** A new password, twice, with hints while typing. Fields `password` and `repeat`. */
export function NewPasswordFields({ labels, isShown, prefix = '' }: { labels: { password: string; repeat: string }; isShown: boolean; prefix?: string }) {
  const [password, setPassword] = useState('');
  const [repeat, setRepeat] = useState('');
  const kind = inputType(isShown);
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

function Hint({ id, text, isMet }: { id: string; text: string; isMet: boolean }) {
  return (
    <span id={id} class={`hint ${isMet ? 'good' : ''}`}>
      {text}
    </span>
  );
}

function lengthHint(password: string) {
  const missing = missingChars(password);
  if (password === '') return { text: text.account.minChars(MIN_CHARS), isMet: false };
  return missing > 0 ? { text: text.account.charsMissing(MIN_CHARS, missing), isMet: false } : { text: text.account.longEnough, isMet: true };
}

function repeatHint(password: string, repeat: string) {
  if (repeat !== '' && password === repeat) return { text: text.account.same, isMet: true };
  // An unfinished repetition is not a mistake yet.
  return { text: password.startsWith(repeat) ? text.account.onceMore : text.account.notSame, isMet: false };
}

/** The new password of a form; throws a `FieldError` if it is not acceptable. */
export function readNewPassword(form: HTMLFormElement): string {
  const password = valueOf(form, 'password');
  if (missingChars(password) > 0) throw new FieldError(text.account.tooShort(MIN_CHARS), 'password');
  if (password !== valueOf(form, 'repeat')) throw new FieldError(text.account.notSameError, 'repeat');
  return password;
}
