import type { OpenSession } from '../open';
export function Transcript({ session }: { session: OpenSession }) { return <p>{session.id}</p>; }
