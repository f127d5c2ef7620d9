import type { OpenSession } from '../open';
import type { QuestionEntry } from '../timeline';
export function QuestionCard({ session, entry }: { session: OpenSession; entry: QuestionEntry }) { return <p>{session.id}{entry.key}</p>; }
