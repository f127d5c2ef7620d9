// What stands before the workbench: one card below the name.
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { text } from '../text';

/** `title`: what the browser's tab says besides the name. */
export function Door({ title, children }: { title?: string; children: ComponentChildren }) {
  useEffect(() => {
    document.title = title ? text.common.titled(title) : text.common.name;
  }, [title]);
  return (
    <main class="door">
      <p class="brand">{text.common.name}</p>
      <div class="card">{children}</div>
    </main>
  );
}

/** Leads to the login from the pages with a one-time link. A whole new page: what was typed is gone on purpose. */
export function ToLogin() {
  return <a href="./">{text.account.login}</a>;
}
