import type { OpenSession } from '../open';
export function Usage({ session }: { session: OpenSession }) { return session.id ? null : null; }
