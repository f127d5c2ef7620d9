// Downloads: hands a file that the page holds in memory to the browser.

/** How long the browser may take to begin reading the file. */
const REVOKE_AFTER_MS = 60_000;

/** Saves a file, or with `open` shows it in a new tab. */
export function download(file: Blob, name: string, action: 'save' | 'open' = 'save'): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  if (action === 'open') link.target = '_blank';
  else link.download = name;
  link.rel = 'noopener';
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), REVOKE_AFTER_MS);
}
