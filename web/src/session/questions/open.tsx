import type { OpenSession } from '../open';
export function OpenQuestions({ session }: { session: OpenSession }) { return session.id ? null : null; }
