// The buttons that send and cancel.
import { useEffect, useRef, useState } from 'preact/hooks';
import { explain } from '../../account';
import { Icon } from '../../parts/icon';
import { Menu, MenuItem } from '../../parts/menu';
import { say } from '../../parts/toast';
import { text } from '../../text';
import type { OpenSession } from '../open';
import { isTouch } from './box';
import type { Manner } from './drafts';

const words = text.composer;
/** Two presses of Escape within this time cancel. */
const TWICE_MS = 1_500;

export function Send({ session, canSend, isWaiting, hasFiles, onSend }: { session: OpenSession; canSend: boolean; isWaiting: boolean; hasFiles: boolean; onSend: (manner: Manner) => void }) {
  const isRunning = session.isRunning.value;
  const label = isWaiting ? words.stopWaiting : isRunning ? words.sendQueued : words.send;
  return (
    <span class={`send ${isRunning ? 'split' : ''}`}>
      <button type="button" class="button send-button" data-part="send" aria-label={label} title={label} aria-disabled={!canSend && !isWaiting} onClick={() => onSend('prompt')}>
        {isRunning ? <span>{words.queue}</span> : <Icon name={isWaiting ? 'close' : 'send'} />}
      </button>
      {isRunning && <OtherWays session={session} hasFiles={hasFiles} onSend={onSend} />}
    </span>
  );
}

function OtherWays({ session, hasFiles, onSend }: { session: OpenSession; hasFiles: boolean; onSend: (manner: Manner) => void }) {
  const canSteer = session.can('steer');
  const ways: [Manner, string, string, string][] = [
    ['prompt', words.queue, words.queueMeans, words.keyEnter],
    ['steer', canSteer ? words.steer : words.next, canSteer ? words.steerMeans : words.nextMeans, words.keySteer],
    ['followUp', words.followUp, words.followUpMeans, words.keyFollowUp],
  ];
  return (
    <Menu button={<Icon name="down" />} label={words.more} buttonClass="button send-more" part="send-more">
      {(close: () => void) =>
        ways.map(([manner, name, means, key]) => (
          <MenuItem
            key={manner}
            part={`send-${manner}`}
            onChoose={() => {
              close();
              onSend(manner);
            }}
          >
            <span class="way">
              <span class="way-name">{name}<kbd>{key}</kbd></span>
              <span class="soft small">{hasFiles && manner !== 'prompt' ? words.onlyQueued : means}</span>
            </span>
          </MenuItem>
        ))
      }
    </Menu>
  );
}

export function Cancel({ session }: { session: OpenSession }) {
  const [isBusy, setBusy] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const isRunning = session.isRunning.value;
  const task = session.view.value.currentTask?.id;
  useEffect(() => setBusy(false), [task, isRunning]);

  const cancel = async () => {
    if (isBusy || !session.isRunning.value) return;
    setBusy(true);
    try {
      // Busy until the run has ended, not only until the wish was heard.
      await session.cancel();
      // The button goes with the run.
      if (document.activeElement?.matches('[data-part=cancel]') && !isTouch()) document.getElementById('prompt')?.focus();
    } catch (error) {
      setBusy(false);
      say(explain(error), 'error');
    }
  };
  useShortcut(isRunning, cancel, setAsking);
  if (!isRunning) return null;
  return (
    <>
      <span class="small soft cancel-again" role="status">{isAsking ? words.cancelAgain : ''}</span>
      <button type="button" class="button quiet cancel" data-part="cancel" aria-label={isBusy ? words.cancelling : words.cancel} title={words.cancelHint} aria-disabled={isBusy} aria-keyshortcuts="Control+." onClick={cancel}>
        <Icon name="stop" />
        <span>{isBusy ? words.cancelling : words.cancel}</span>
      </button>
    </>
  );
}

/** Ctrl+. at once, Escape when it is pressed twice and nothing else was open to be closed by it. */
function useShortcut(isRunning: boolean, cancel: () => void, setAsking: (isAsking: boolean) => void): void {
  const latest = useRef(cancel);
  latest.current = cancel;
  useEffect(() => {
    if (!isRunning) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const calm = () => {
      clearTimeout(timer);
      timer = undefined;
      setAsking(false);
    };
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.key === '.' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        return latest.current();
      }
      if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing || isForAnother(event)) return;
      if (timer !== undefined) {
        calm();
        return latest.current();
      }
      setAsking(true);
      timer = setTimeout(calm, TWICE_MS);
    };
    document.addEventListener('keydown', onKeyDown);
    return () => {
      calm();
      document.removeEventListener('keydown', onKeyDown);
    };
  }, [isRunning]);
}

/** Something that is open is closed by it, and is the target even if it is gone already. */
function isForAnother(event: KeyboardEvent): boolean {
  return (event.target instanceof Element && event.target.closest('dialog, [popover]') !== null) || document.querySelector('dialog[open], :popover-open') !== null;
}
