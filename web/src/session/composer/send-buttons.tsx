// Send buttons: send, the other ways to send, and cancel.
import { useEffect, useRef, useState } from 'preact/hooks';
import { explain } from '../../auth';
import { Icon } from '../../components/icon';
import { Menu, MenuItem } from '../../components/menu';
import { showToast } from '../../components/toast';
import { text } from '../../text';
import type { OpenSession } from '../open-session';
import type { PromptKind } from './drafts';
import { isTouch } from './prompt-box';

const strings = text.composer;
/** Escape pressed twice within this time cancels the run. */
const DOUBLE_PRESS_MS = 1_500;

export function SendButton({ session, canSend, isWaiting, hasFiles, onSend }: { session: OpenSession; canSend: boolean; isWaiting: boolean; hasFiles: boolean; onSend: (kind: PromptKind) => void }) {
  const isRunning = session.isRunning.value;
  const label = isWaiting ? strings.stopWaiting : isRunning ? strings.sendQueued : strings.send;
  return (
    <span class={`send ${isRunning ? 'split' : ''}`}>
      <button type="button" class="button send-button" data-part="send" aria-label={label} title={label} aria-disabled={!canSend && !isWaiting} onClick={() => onSend('prompt')}>
        {isRunning ? <span>{strings.queue}</span> : <Icon name={isWaiting ? 'close' : 'send'} />}
      </button>
      {isRunning && <SendKindsMenu session={session} hasFiles={hasFiles} onSend={onSend} />}
    </span>
  );
}

function SendKindsMenu({ session, hasFiles, onSend }: { session: OpenSession; hasFiles: boolean; onSend: (kind: PromptKind) => void }) {
  const canSteer = session.can('steer');
  const kinds: [PromptKind, string, string, string][] = [
    ['prompt', strings.queue, strings.queueMeans, strings.keyEnter],
    ['steer', canSteer ? strings.steer : strings.next, canSteer ? strings.steerMeans : strings.nextMeans, strings.keySteer],
    ['followUp', strings.followUp, strings.followUpMeans, strings.keyFollowUp],
  ];
  return (
    <Menu button={<Icon name="down" />} label={strings.more} buttonClass="button send-more" part="send-more">
      {(close: () => void) =>
        kinds.map(([kind, name, description, key]) => (
          <MenuItem
            key={kind}
            part={`send-${kind}`}
            onChoose={() => {
              close();
              onSend(kind);
            }}
          >
            <span class="send-kind">
              <span class="send-kind-name">{name}<kbd>{key}</kbd></span>
              <span class="soft small">{hasFiles && kind !== 'prompt' ? strings.onlyQueued : description}</span>
            </span>
          </MenuItem>
        ))
      }
    </Menu>
  );
}

export function CancelButton({ session }: { session: OpenSession }) {
  const [isBusy, setBusy] = useState(false);
  const [isConfirming, setConfirming] = useState(false);
  const isRunning = session.isRunning.value;
  const task = session.view.value.currentTask?.id;
  useEffect(() => setBusy(false), [task, isRunning]);

  const cancel = async () => {
    if (isBusy || !session.isRunning.value) return;
    setBusy(true);
    try {
      // Stays busy until the run has ended, not only until the request is accepted.
      await session.cancel();
      // The button disappears with the run.
      if (document.activeElement?.matches('[data-part=cancel]') && !isTouch()) document.getElementById('prompt')?.focus();
    } catch (error) {
      setBusy(false);
      showToast(explain(error), 'error');
    }
  };
  useCancelShortcut(isRunning, cancel, setConfirming);
  if (!isRunning) return null;
  return (
    <>
      <span class="small soft cancel-again" role="status">{isConfirming ? strings.cancelAgain : ''}</span>
      <button type="button" class="button quiet cancel" data-part="cancel" aria-label={isBusy ? strings.cancelling : strings.cancel} title={strings.cancelHint} aria-disabled={isBusy} aria-keyshortcuts="Control+." onClick={cancel}>
        <Icon name="stop" />
        <span>{isBusy ? strings.cancelling : strings.cancel}</span>
      </button>
    </>
  );
}

/** Ctrl+. at once; Escape if pressed twice while nothing else was open to be closed by it. */
function useCancelShortcut(isRunning: boolean, cancel: () => void, setConfirming: (isConfirming: boolean) => void): void {
  const latestCancel = useRef(cancel);
  latestCancel.current = cancel;
  useEffect(() => {
    if (!isRunning) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const reset = () => {
      clearTimeout(timer);
      timer = undefined;
      setConfirming(false);
    };
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.key === '.' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        return latestCancel.current();
      }
      if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing || isForOpenOverlay(event)) return;
      if (timer !== undefined) {
        reset();
        return latestCancel.current();
      }
      setConfirming(true);
      timer = setTimeout(reset, DOUBLE_PRESS_MS);
    };
    document.addEventListener('keydown', onKeyDown);
    return () => {
      reset();
      document.removeEventListener('keydown', onKeyDown);
    };
  }, [isRunning]);
}

/** Whether an open dialog or menu takes the key. It is the target even if it has already closed. */
function isForOpenOverlay(event: KeyboardEvent): boolean {
  return (event.target instanceof Element && event.target.closest('dialog, [popover]') !== null) || document.querySelector('dialog[open], :popover-open') !== null;
}
