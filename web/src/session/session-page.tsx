// A session on the screen: its head, what was said, what is asked, and where to say more.
import { useEffect, useState } from 'preact/hooks';
import { Bar } from '../bar';
import { notice } from '../notices';
import { address } from '../place';
import { text } from '../text';
import { Composer } from './composer/composer';
import { Kept } from './composer/kept';
import { whyEnded } from './connection';
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
    const told = new Set<unknown>();
    const stop = opened.notices.subscribe((notices) => {
      notices.filter((one) => !told.has(one)).forEach(notice);
      notices.forEach((one) => told.add(one));
    });
    setSession(opened);
    return () => {
      if (current.value === opened) current.value = undefined;
      stop();
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
        <Inside session={session} />
      </main>
    </>
  );
}

function Inside({ session }: { session: OpenSession }) {
  const line = session.connection.value;
  // It ended before there was anything to show.
  if (line.is === 'ended' && !session.isReady.value) {
    return (
      <div class="session-over card" data-part="ended">
        <p>{whyEnded(line.failure)}</p>
        <Kept session={session.id} />
        <a class="button" href={address({ page: 'new' })}>{text.sessions.create}</a>
      </div>
    );
  }
  return (
    <>
      <Transcript session={session} />
      <OpenQuestions session={session} />
      <Composer session={session} />
    </>
  );
}
