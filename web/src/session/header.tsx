// The head of a session.
import type { OpenSession } from './open';

export function SessionHeader({ session }: { session: OpenSession }) {
  return (
    <div class="session-head">
      <h1>{session.view.value.title ?? session.id}</h1>
      <span data-part="connection" data-state={session.connection.value.is}>{session.connection.value.is}</span>
    </div>
  );
}
