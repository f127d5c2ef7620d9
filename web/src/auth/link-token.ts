// Link token: the one-time token of a setup or invitation link.
//
// Moved from the address bar, where others can see it, to sessionStorage, so that a reload still finds it.
import { useEffect, useState } from 'preact/hooks';

function takeToken(key: string): string | undefined {
  const inLink = new URLSearchParams(location.hash.slice(1)).get('t');
  try {
    if (inLink) sessionStorage.setItem(key, inLink);
  } catch {
    // Without storage the token stays in the address, where a reload finds it.
    return inLink ?? undefined;
  }
  if (inLink) history.replaceState(null, '', location.pathname + location.search);
  return sessionStorage.getItem(key) ?? undefined;
}

/** The token that this tab was opened with. */
export function useLinkToken(key: string): string | undefined {
  const [token, setToken] = useState(() => takeToken(key));
  useEffect(() => {
    // A second link opened in the same tab changes only the fragment.
    const onHashChange = () => setToken(takeToken(key));
    addEventListener('hashchange', onHashChange);
    return () => removeEventListener('hashchange', onHashChange);
  }, [key]);
  return token;
}

export function removeLinkToken(key: string): void {
  try {
    sessionStorage.removeItem(key);
  } catch {
    // No storage, so nothing to remove.
  }
}
