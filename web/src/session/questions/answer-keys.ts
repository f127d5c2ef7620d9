// Answer keys: digits that answer a question, and moving the focus to its card.

/** Presses the answer that a digit stands for; true if there is one. A critical yes is only focused. */
export function pressKey(event: KeyboardEvent, card: HTMLElement): boolean {
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code)?.[1];
  if (digit === undefined || event.ctrlKey || event.metaKey || event.repeat) return false;
  const isTyping = event.target instanceof HTMLElement && event.target.matches('textarea, input:not([type=radio], [type=checkbox])');
  // Also with Alt, which types characters on some keyboards.
  if (isTyping) return false;
  const target = card.querySelector<HTMLElement>(`[data-key="${digit}"]`);
  if (!target) return false;
  event.preventDefault();
  const isCritical = card.classList.contains('critical') && target.dataset['yes'] === 'true';
  if (isCritical || target instanceof HTMLInputElement) target.focus();
  if (!isCritical) target.click();
  return true;
}

/** Scrolls to a card and focuses its text field, or else the card; false if it is not on the page. */
export function focusCard(questionId: string): boolean {
  const card = document.querySelector<HTMLElement>(`[data-question="${questionId}"]`);
  if (!card) return false;
  const isMotionReduced = matchMedia('(prefers-reduced-motion: reduce)').matches;
  card.scrollIntoView({ block: 'center', behavior: isMotionReduced ? 'auto' : 'smooth' });
  const field = card.querySelector<HTMLInputElement | HTMLTextAreaElement>('[data-part=answer-text]');
  (field ?? card).focus({ preventScroll: true });
  // A suggested answer is there to be continued.
  field?.setSelectionRange(field.value.length, field.value.length);
  return true;
}
