// Mounted: a hook that tells awaited work whether its component is still on the page.
import { useEffect, useRef } from 'preact/hooks';

/** `current` is false after the component was removed. */
export function useIsMounted(): { readonly current: boolean } {
  const isMounted = useRef(true);
  useEffect(() => {
    isMounted.current = true;
    return () => {
      isMounted.current = false;
    };
  }, []);
  return isMounted;
}
