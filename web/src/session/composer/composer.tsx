import type { OpenSession } from '../open';
export function Composer({ session }: { session: OpenSession }) { return <p>{session.id}</p>; }
