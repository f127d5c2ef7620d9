// Forms that say what goes on, cannot be sent twice, and never lose what was typed.
import type { ComponentChildren, TargetedSubmitEvent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Failure } from '@switchboard/client';
import { explain } from '../account';
import { text } from '../text';

/** Something that the person has to put right in one of the fields. */
export class Complaint extends Error {
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
  /** What it does. The words that it answers are said; what it throws is shown. */
  action: (form: HTMLFormElement) => Promise<string | void>;
  label: string;
  busyLabel: string;
  buttonClass?: string;
  /** Where to go when the gateway refuses without naming a field. */
  fieldOfRefusal?: string;
  children?: ComponentChildren;
  /** Below the button. */
  after?: ComponentChildren;
}

/** A form with one button, a line for errors above it and one for news below. */
export function Form({ id, action, label, busyLabel, buttonClass = '', fieldOfRefusal, children, after }: FormProps) {
  const [state, setState] = useState<{ error?: string; status?: string }>({});
  const [isBusy, setBusy] = useState(false);
  const [waitUntil, setWaitUntil] = useState<number>();
  const seconds = useCountdown(waitUntil, () => {
    setWaitUntil(undefined);
    setState({ status: text.common.tryNow });
  });
  const isAlive = useAlive();
  const isWaiting = isBusy || waitUntil !== undefined;

  const onSubmit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    if (isWaiting) return;
    setBusy(true);
    setState({});
    markAll(form);
    try {
      const status = await action(form);
      if (isAlive.current) setState(status ? { status } : {});
    } catch (error) {
      if (!isAlive.current) return;
      setState({ error: error instanceof Complaint ? error.message : explain(error) });
      const named = fieldOf(error);
      // The gateway may know the field by another name.
      if (!(named && markOne(form, named)) && fieldOfRefusal && isRefusal(error)) markOne(form, fieldOfRefusal);
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

  // Not `disabled`, which would take the focus away. The seconds stand on the button and not in the
  // alert, which would be read out each time.
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

function fieldOf(error: unknown): string | undefined {
  if (error instanceof Complaint) return error.field;
  const named = error instanceof Failure ? error.details['field'] : undefined;
  return typeof named === 'string' ? named : undefined;
}

function isRefusal(error: unknown): boolean {
  return error instanceof Failure && (error.status === 401 || error.status === 403 || error.status === 422);
}

function markAll(form: HTMLFormElement): void {
  for (const field of form.querySelectorAll('[aria-invalid]')) field.removeAttribute('aria-invalid');
}

/** False if there is no such field. */
function markOne(form: HTMLFormElement, name: string): boolean {
  const field = form.elements.namedItem(name);
  if (!(field instanceof HTMLElement)) return false;
  field.setAttribute('aria-invalid', 'true');
  field.focus();
  return true;
}

/** The text of a field. */
export function valueOf(form: HTMLFormElement, name: string): string {
  const field = form.elements.namedItem(name);
  return field instanceof HTMLInputElement || field instanceof HTMLSelectElement || field instanceof HTMLTextAreaElement ? field.value : '';
}

/** The text of a field that may not be empty. */
export function filled(form: HTMLFormElement, name: string, words: string): string {
  const value = valueOf(form, name);
  if (value.trim() === '') throw new Complaint(words, name);
  return value;
}

/** Whole seconds until then; `onEnd` is called once they are over. */
export function useCountdown(until: number | undefined, onEnd?: () => void): number {
  const [now, setNow] = useState(Date.now());
  const end = useRef(onEnd);
  end.current = onEnd;
  useEffect(() => {
    if (until === undefined) return;
    setNow(Date.now());
    const timer = setInterval(() => {
      setNow(Date.now());
      if (Date.now() < until) return;
      clearInterval(timer);
      end.current?.();
    }, 250);
    return () => clearInterval(timer);
  }, [until]);
  return until === undefined ? 0 : Math.max(0, Math.ceil((until - now) / 1000));
}

/** Whether the component is still shown, for what is awaited meanwhile. */
export function useAlive(): { readonly current: boolean } {
  const alive = useRef(true);
  useEffect(() => {
    alive.current = true;
    return () => {
      alive.current = false;
    };
  }, []);
  return alive;
}
