// Session page: header, transcript, open questions and composer of one session.
import type { Failure } from '@switchboard/client';
import { useEffect, useState } from 'preact/hooks';
import { showNotice } from '../notices';
import { hrefOf } from '../route';
import { sessionList } from '../sessions/session-list';
import { text } from '../text';
import { TopBar } from '../top-bar';
import { Composer } from './composer/composer';
import { UnsentDraft } from './composer/unsent-draft';
import { describeEnd } from './connection-badge';
import { currentSession } from './current-session';
import { OpenSession } from './open-session';
import { OpenQuestionBar } from './questions/open-question-bar';
import { useReadMark } from './read-mark';
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
      <SessionParts session={session} />
    </>
  );
}

/** Once the session has ended for the user, nothing of it stays on the page but the user's own draft. */
function SessionParts({ session }: { session: OpenSession }) {
  useReadMark(session);
  const connection = session.connection.value;
  if (connection.is === 'ended') return <EndedSession id={session.id} failure={connection.failure} />;
  return (
    <>
      <TopBar>
        <SessionHeader session={session} />
      </TopBar>
      <main class="session">
        <Transcript session={session} />
        <OpenQuestionBar session={session} />
        <Composer session={session} />
      </main>
    </>
  );
}

function EndedSession({ id, failure }: { id: string; failure: Failure }) {
  useEffect(() => sessionList.forgetRow(id), [id]);
  return (
    <>
      <TopBar isBare>
        <span class="bar-title" aria-hidden="true">{text.common.name}</span>
      </TopBar>
      <main class="paged">
        <div class="session-over card" data-part="ended">
          <h1>{text.sessions.connection.ended}</h1>
          <p role="alert">{describeEnd(failure)}</p>
          <UnsentDraft sessionId={id} />
          <a class="button" href={hrefOf({ page: 'new' })}>{text.sessions.create}</a>
        </div>
      </main>
    </>
  );
}
