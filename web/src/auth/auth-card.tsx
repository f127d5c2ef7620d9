// Auth card: the frame of the sign-in pages.
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { text } from '../text';

/** `title`: added to the tab title. */
export function AuthCard({ title, children }: { title?: string; children: ComponentChildren }) {
  useEffect(() => {
    document.title = title ? text.common.titled(title) : text.common.name;
  }, [title]);
  return (
    <main class="auth-page">
      <p class="brand">{text.common.name}</p>
      <div class="card">{children}</div>
    </main>
  );
}

/** A link from the one-time pages to the login. A full page load, which discards what was typed. */
export function LoginLink() {
  return <a href="./">{text.account.login}</a>;
}
