// The keys that answer questions.

/** Presses what a digit stands for in a card; true if there is such a thing. A critical yes is only focused. */
export function pressKey(event: KeyboardEvent, card: HTMLElement): boolean {
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code)?.[1];
  if (digit === undefined || event.ctrlKey || event.metaKey || event.repeat) return false;
  const isTyping = event.target instanceof HTMLElement && event.target.matches('textarea, input:not([type=radio], [type=checkbox])');
  // Also with Alt: there are keyboards on which that types something.
  if (isTyping) return false;
  const target = card.querySelector<HTMLElement>(`[data-key="${digit}"]`);
  if (!target) return false;
  event.preventDefault();
  const isCritical = card.classList.contains('critical') && target.dataset['yes'] === 'true';
  if (isCritical || target instanceof HTMLInputElement) target.focus();
  if (!isCritical) target.click();
  return true;
}

/** Brings a card into sight and the focus to it; false if it is not in the page. */
export function focusCard(questionId: string): boolean {
  const card = document.querySelector<HTMLElement>(`[data-question="${questionId}"]`);
  if (!card) return false;
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  card.scrollIntoView({ block: 'center', behavior: calm ? 'auto' : 'smooth' });
  card.focus({ preventScroll: true });
  return true;
}
