// Control: which member may send prompts, if only one may at a time.
import { useEffect, useRef, useState } from 'preact/hooks';
import { currentUser, explain } from '../auth';
import { showToast } from '../components/toast';
import type { Row } from '../sessions/session-list';
import { text } from '../text';
import type { OpenSession } from './open-session';

/** The gateway ends control a minute after the holder's last message. */
const CONTROL_HEARTBEAT_MS = 10_000;

export function Control({ session, row }: { session: OpenSession; row: Row | undefined }) {
  const control = session.view.value.control;
  const controls = useControl(session);
  const me = currentUser()?.username ?? '';
  if (control?.mode !== 'exclusive') return null;
  const isHeldByMe = control.connectionId !== undefined && control.connectionId === controls.connection;
  const canControl = row !== undefined && row.access !== 'viewer';
  const canTake = !control.username || control.username === me || row?.access === 'owner';
  return (
    <div class="control" data-part="control" data-state={isHeldByMe ? 'mine' : control.username ? 'taken' : 'free'}>
      <span class="small soft" role="status">{describeControl(isHeldByMe, control.username, me)}</span>
      {canControl && isHeldByMe && (
        <button type="button" class="button quiet small" data-part="release" aria-disabled={controls.isBusy} onClick={controls.release}>{text.sessions.release}</button>
      )}
      {canControl && !isHeldByMe && canTake && (
        <button type="button" class="button quiet small" data-part="take" aria-disabled={controls.isBusy} onClick={() => controls.take(control.username !== undefined && control.username !== me)}>
          {control.username ? text.sessions.takeOver : text.sessions.take}
        </button>
      )}
    </div>
  );
}

function describeControl(isHeldByMe: boolean, username: string | undefined, me: string): string {
  if (isHeldByMe) return text.sessions.youDrive;
  if (!username) return text.sessions.nobodyDrives;
  return username === me ? text.sessions.youDriveElsewhere : text.sessions.drives(username);
}

/** Takes, keeps and releases control. */
function useControl(session: OpenSession) {
  /** The connection of ours that holds control. */
  const [connection, setConnection] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const wantsControl = useRef(false);
  const control = session.view.value.control;
  const isHeldByMe = connection !== undefined && control?.connectionId === connection;
  const isLive = session.isLive.value;

  const run = async (task: () => Promise<void>) => {
    if (isBusy) return;
    setBusy(true);
    try {
      await task();
    } catch (error) {
      wantsControl.current = false;
      showToast(explain(error), 'error');
    }
    setBusy(false);
  };
  const take = (steal: boolean) =>
    void run(async () => {
      const done = await session.send('TAKE_CONTROL', steal ? { steal } : {});
      setConnection(done.control?.connectionId ?? undefined);
      wantsControl.current = true;
    });
  const release = () =>
    void run(async () => {
      wantsControl.current = false;
      await session.send('RELEASE_CONTROL', {});
      setConnection(undefined);
    });

  useEffect(() => {
    if (!isHeldByMe || !isLive) return;
    const timer = setInterval(() => session.send('HEARTBEAT', {}).catch(() => {}), CONTROL_HEARTBEAT_MS);
    return () => clearInterval(timer);
  }, [isHeldByMe, isLive]);
  useEffect(() => {
    if (!wantsControl.current || isHeldByMe || !isLive) return;
    // Control is lost with the connection; take it again unless another member has it now.
    if (control?.username) wantsControl.current = false;
    else if (control?.mode === 'exclusive') take(false);
  }, [control, isLive]);
  return { connection, isBusy, take, release };
}
