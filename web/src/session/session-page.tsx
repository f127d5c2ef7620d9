// Session page: header, transcript, open questions and composer of one session.
import { useEffect, useState } from 'preact/hooks';
import { showNotice } from '../notices';
import { hrefOf } from '../route';
import { text } from '../text';
import { TopBar } from '../top-bar';
import { Composer } from './composer/composer';
import { UnsentDraft } from './composer/unsent-draft';
import { describeEnd } from './connection-badge';
import { currentSession } from './current-session';
import { OpenSession } from './open-session';
import { OpenQuestionBar } from './questions/open-question-bar';
import { SessionHeader } from './session-header';
import { Transcript } from './transcript/transcript';

/** Pass the id as `key` too: each session has its own page instance. */
export function SessionPage({ id }: { id: string }) {
  const [session, setSession] = useState<OpenSession>();
  useEffect(() => {
    const opened = new OpenSession(id);
    currentSession.value = opened;
    const shown = new Set<unknown>();
    const stop = opened.notices.subscribe((notices) => {
      notices.filter((one) => !shown.has(one)).forEach(showNotice);
      notices.forEach((one) => shown.add(one));
    });
    setSession(opened);
    return () => {
      if (currentSession.value === opened) currentSession.value = undefined;
      stop();
      opened.close();
    };
  }, [id]);
  if (!session) return null;
  return (
    <>
      <TopBar>
        <SessionHeader session={session} />
      </TopBar>
      <main class="session">
        <SessionContent session={session} />
      </main>
    </>
  );
}

function SessionContent({ session }: { session: OpenSession }) {
  const connection = session.connection.value;
  // It ended before there was anything to show.
  if (connection.is === 'ended' && !session.isReady.value) {
    return (
      <div class="session-over card" data-part="ended">
        <p>{describeEnd(connection.failure)}</p>
        <UnsentDraft sessionId={session.id} />
        <a class="button" href={hrefOf({ page: 'new' })}>{text.sessions.create}</a>
      </div>
    );
  }
  return (
    <>
      <Transcript session={session} />
      <OpenQuestionBar session={session} />
      <Composer session={session} />
    </>
  );
}
