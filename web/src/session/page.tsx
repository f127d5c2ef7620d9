// A session on the screen: its head, what was said, what is asked, and where to say more.
import { useEffect, useState } from 'preact/hooks';
import { Bar } from '../bar';
import { Composer } from './composer/composer';
import { current } from './current';
import { SessionHeader } from './header';
import { OpenSession } from './open';
import { OpenQuestions } from './questions/open';
import { Transcript } from './transcript/transcript';

/** Give it the id as `key`, too: another session is another page. */
export function SessionPage({ id }: { id: string }) {
  const [session, setSession] = useState<OpenSession>();
  useEffect(() => {
    const opened = new OpenSession(id);
    current.value = opened;
    setSession(opened);
    return () => {
      if (current.value === opened) current.value = undefined;
      opened.close();
    };
  }, [id]);
  if (!session) return null;
  return (
    <>
      <Bar>
        <SessionHeader session={session} />
      </Bar>
      <main class="session">
        <Transcript session={session} />
        <OpenQuestions session={session} />
        <Composer session={session} />
      </main>
    </>
  );
}
