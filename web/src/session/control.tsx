// Who drives, where only one may at a time.
import { useEffect, useRef, useState } from 'preact/hooks';
import { explain, standing } from '../account';
import { say } from '../parts/toast';
import type { Row } from '../sessions/list';
import { text } from '../text';
import type { OpenSession } from './open';

/** Control ends a minute after the last sign of whoever has it. */
const HEARTBEAT_MS = 10_000;

export function Control({ session, row }: { session: OpenSession; row: Row | undefined }) {
  const control = session.view.value.control;
  const drive = useDrive(session);
  const now = standing.value;
  const me = now.is === 'in' ? now.user.username : '';
  if (control?.mode !== 'exclusive') return null;
  const isMine = control.connectionId !== undefined && control.connectionId === drive.connection;
  const mayDrive = row !== undefined && row.access !== 'viewer';
  const mayTake = !control.username || control.username === me || row?.access === 'owner';
  return (
    <div class="control" data-part="control" data-state={isMine ? 'mine' : control.username ? 'taken' : 'free'}>
      <span class="small soft" role="status">{wordsFor(isMine, control.username, me)}</span>
      {mayDrive && isMine && (
        <button type="button" class="button quiet small" data-part="release" aria-disabled={drive.isBusy} onClick={drive.release}>{text.sessions.release}</button>
      )}
      {mayDrive && !isMine && mayTake && (
        <button type="button" class="button quiet small" data-part="take" aria-disabled={drive.isBusy} onClick={() => drive.take(control.username !== undefined && control.username !== me)}>
          {control.username ? text.sessions.takeOver : text.sessions.take}
        </button>
      )}
    </div>
  );
}

function wordsFor(isMine: boolean, username: string | undefined, me: string): string {
  if (isMine) return text.sessions.youDrive;
  if (!username) return text.sessions.nobodyDrives;
  return username === me ? text.sessions.youDriveElsewhere : text.sessions.drives(username);
}

/** Takes control, keeps it, gives it back. */
function useDrive(session: OpenSession) {
  /** The connection of ours that has control. */
  const [connection, setConnection] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const wants = useRef(false);
  const control = session.view.value.control;
  const isMine = connection !== undefined && control?.connectionId === connection;
  const isLive = session.connection.value.is === 'live' || session.connection.value.is === 'resumed';

  const act = async (task: () => Promise<void>) => {
    if (isBusy) return;
    setBusy(true);
    try {
      await task();
    } catch (error) {
      wants.current = false;
      say(explain(error), 'error');
    }
    setBusy(false);
  };
  const take = (steal: boolean) =>
    void act(async () => {
      const done = await session.send('TAKE_CONTROL', steal ? { steal } : {});
      setConnection(done.control?.connectionId ?? undefined);
      wants.current = true;
    });
  const release = () =>
    void act(async () => {
      wants.current = false;
      await session.send('RELEASE_CONTROL', {});
      setConnection(undefined);
    });

  useEffect(() => {
    if (!isMine || !isLive) return;
    const timer = setInterval(() => session.send('HEARTBEAT', {}).catch(() => {}), HEARTBEAT_MS);
    return () => clearInterval(timer);
  }, [isMine, isLive]);
  useEffect(() => {
    if (!wants.current || isMine || !isLive) return;
    // A broken line takes control with it; it is taken up again, unless somebody else has it now.
    if (control?.username) wants.current = false;
    else if (control?.mode === 'exclusive') take(false);
  }, [control, isLive]);
  return { connection, isBusy, take, release };
}
