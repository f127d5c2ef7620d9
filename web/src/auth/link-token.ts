// The one-time token of a setup or invitation link.
//
// It moves from the address bar, where others see it, to the storage of this tab, so that a reload works.
import { useEffect, useState } from 'preact/hooks';

function take(key: string): string | undefined {
  const inLink = new URLSearchParams(location.hash.slice(1)).get('t');
  try {
    if (inLink) sessionStorage.setItem(key, inLink);
  } catch {
    // Storage is switched off: then it stays in the address, where a reload finds it.
    return inLink ?? undefined;
  }
  if (inLink) history.replaceState(null, '', location.pathname + location.search);
  return sessionStorage.getItem(key) ?? undefined;
}

/** The token that this tab was opened with. */
export function useLinkToken(key: string): string | undefined {
  const [token, setToken] = useState(() => take(key));
  useEffect(() => {
    // A second link that is opened in the same tab changes the fragment only.
    const changed = () => setToken(take(key));
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, [key]);
  return token;
}

/** It was used. */
export function dropLinkToken(key: string): void {
  try {
    sessionStorage.removeItem(key);
  } catch {
    // There was none.
  }
}
