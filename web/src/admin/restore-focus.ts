// Focus: moves it to the section's heading when the element that had it was removed.

/** Focuses the section's heading if nothing has the focus any more. */
export function restoreFocus(): void {
  requestAnimationFrame(() => {
    if (document.activeElement && document.activeElement !== document.body) return;
    document.querySelector<HTMLElement>('[data-part=admin] h2')?.focus();
  });
}
