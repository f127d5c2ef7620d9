// Form: shows progress and errors, cannot be sent twice, and never loses what was typed.
import type { ComponentChildren, TargetedSubmitEvent } from 'preact';
import { useState } from 'preact/hooks';
import { Failure } from '@switchboard/client';
import { explain } from '../auth';
import { text } from '../text';
import { useCountdown } from './use-countdown';
import { useIsMounted } from './use-is-mounted';

/** An error in one field, to be corrected by the user. */
export class FieldError extends Error {
  constructor(
    message: string,
    /** The name of the field. */
    readonly field: string,
  ) {
    super(message);
  }
}

interface FormProps {
  id?: string;
  /** Runs on submit. A returned text is shown as status, a thrown error. */
  action: (form: HTMLFormElement) => Promise<string | void>;
  label: string;
  busyLabel: string;
  buttonClass?: string;
  /** The field to focus when the gateway refuses without naming one. */
  refusedField?: string;
  children?: ComponentChildren;
  /** Below the button. */
  after?: ComponentChildren;
}

/** A form with one button, errors above it and status below. */
export function Form({ id, action, label, busyLabel, buttonClass = '', refusedField, children, after }: FormProps) {
  const [state, setState] = useState<{ error?: string; status?: string }>({});
  const [isBusy, setBusy] = useState(false);
  const [waitUntil, setWaitUntil] = useState<number>();
  const seconds = useCountdown(waitUntil, () => {
    setWaitUntil(undefined);
    setState({ status: text.common.tryNow });
  });
  const isAlive = useIsMounted();
  const isWaiting = isBusy || waitUntil !== undefined;

  const onSubmit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    if (isWaiting) return;
    setBusy(true);
    setState({});
    clearMarks(form);
    try {
      const status = await action(form);
      if (isAlive.current) setState(status ? { status } : {});
    } catch (error) {
      if (!isAlive.current) return;
      setState({ error: error instanceof FieldError ? error.message : explain(error) });
      const named = fieldNameOf(error);
      // The gateway may use another name for the field.
      if (!(named && markInvalid(form, named)) && refusedField && isRefusal(error)) markInvalid(form, refusedField);
      if (error instanceof Failure && error.retryAfterMs) setWaitUntil(Date.now() + error.retryAfterMs);
    } finally {
      if (isAlive.current) setBusy(false);
    }
  };

  const onInput = (event: Event) => {
    const field = event.target as HTMLElement;
    if (!field.hasAttribute('aria-invalid')) return;
    field.removeAttribute('aria-invalid');
    setState({});
  };

  // `aria-disabled`, because `disabled` would lose the focus. The countdown is on the button: in the alert a
  // screen reader would read it every second.
  return (
    <form id={id} method="post" noValidate onSubmit={(event) => void onSubmit(event)} onInput={onInput}>
      {children}
      <p class="error" role="alert">{state.error}</p>
      <button type="submit" class={`button ${buttonClass}`} aria-disabled={isWaiting}>
        {isBusy ? busyLabel : seconds > 0 ? text.common.tryIn(seconds) : label}
      </button>
      <p class="status small soft" role="status">{state.status}</p>
      {after}
    </form>
  );
}

function fieldNameOf(error: unknown): string | undefined {
  if (error instanceof FieldError) return error.field;
  const fieldName = error instanceof Failure ? error.details['field'] : undefined;
  return typeof fieldName === 'string' ? fieldName : undefined;
}

function isRefusal(error: unknown): boolean {
  return error instanceof Failure && (error.status === 401 || error.status === 403 || error.status === 422);
}

function clearMarks(form: HTMLFormElement): void {
  for (const field of form.querySelectorAll('[aria-invalid]')) field.removeAttribute('aria-invalid');
}

/** False if there is no such field. */
function markInvalid(form: HTMLFormElement, name: string): boolean {
  const field = form.elements.namedItem(name);
  if (!(field instanceof HTMLElement)) return false;
  field.setAttribute('aria-invalid', 'true');
  field.focus();
  return true;
}

/** The value of a field. */
export function valueOf(form: HTMLFormElement, name: string): string {
  const field = form.elements.namedItem(name);
  return field instanceof HTMLInputElement || field instanceof HTMLSelectElement || field instanceof HTMLTextAreaElement ? field.value : '';
}

/** The value of a field that must not be empty. */
export function requiredValue(form: HTMLFormElement, name: string, message: string): string {
  const value = valueOf(form, name);
  if (value.trim() === '') throw new FieldError(message, name);
  return value;
}
