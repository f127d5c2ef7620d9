// The box in which people write: it grows with its text, takes files, and knows the agent's commands.
import type { ComponentChildren, TargetedKeyboardEvent } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { IconButton } from '../../parts/icon';
import { text } from '../../text';
import { Attachments } from './attachments';
import { CommandList, useCommandList } from './commands';
import type { Manner } from './drafts';
import type { Command } from './inventory';
import type { Writing } from './writing';

const words = text.composer;
/** On a touch screen Enter starts a new line, and the button sends. */
export const isTouch = () => matchMedia('(hover: none) and (pointer: coarse)').matches;

export interface BoxProps {
  writing: Writing;
  label: string;
  placeholder: string;
  /** Characters that a prompt may have. */
  most: number | undefined;
  /** Bytes that a file may have. */
  mostBytes: number | undefined;
  /** Does the agent read files? */
  readsFiles: boolean;
  commands: () => readonly Command[];
  onSend: (manner: Manner) => void;
  /** The buttons: `left` beside the one for files, `right` at the end. */
  left?: ComponentChildren;
  right: ComponentChildren;
}

export function Box(props: BoxProps) {
  const { writing, label, placeholder, most, mostBytes, readsFiles, commands, onSend } = props;
  const area = useRef<HTMLTextAreaElement>(null);
  const [isOver, setOver] = useState(false);
  const list = useCommandList(writing, area, commands);
  const value = writing.text.value;
  useLayoutEffect(() => grow(area.current), [value]);

  const onKeyDown = (event: TargetedKeyboardEvent<HTMLTextAreaElement>) => {
    // 229: what some browsers say while letters are being put together.
    if (event.isComposing || event.keyCode === 229 || list.onKeyDown(event) || event.key !== 'Enter' || event.shiftKey) return;
    const manner = event.ctrlKey || event.metaKey ? 'steer' : event.altKey ? 'followUp' : 'prompt';
    if (manner === 'prompt' && isTouch()) return;
    event.preventDefault();
    onSend(manner);
  };
  const addFiles = (files: FileList | undefined | null) => {
    if (!files || files.length === 0) return false;
    writing.files.add(files, mostBytes);
    return true;
  };
  const drag = (isIn: boolean) => (event: DragEvent) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    setOver(isIn);
  };
  return (
    <div
      class={`box ${isOver ? 'over' : ''}`}
      onDragOver={drag(true)}
      onDragLeave={drag(false)}
      onDrop={(event) => {
        drag(false)(event);
        addFiles(event.dataTransfer?.files);
      }}
    >
      {isOver && <p class="drop-zone" data-part="drop">{words.drop}</p>}
      <CommandList list={list} />
      <Attachments files={writing.files} />
      <textarea
        ref={area}
        id="prompt"
        rows={1}
        aria-label={label}
        aria-describedby="prompt-error prompt-left"
        placeholder={placeholder}
        value={value}
        enterkeyhint={isTouch() ? 'enter' : 'send'}
        {...list.aria}
        onInput={(event) => {
          writing.text.value = event.currentTarget.value;
          writing.error.value = '';
          list.look();
        }}
        onSelect={list.look}
        onBlur={list.close}
        onKeyDown={onKeyDown}
        onPaste={(event) => {
          // Text that was copied with its picture is meant as text.
          const data = event.clipboardData;
          if (data && !data.types.includes('text/plain') && addFiles(data.files)) event.preventDefault();
        }}
      />
      <p id="prompt-left" class="box-left small" role="status"><Left text={value} most={most} /></p>
      <p id="prompt-error" class="error small" role="alert">{writing.error.value}</p>
      <div class="box-buttons">
        <Attach readsFiles={readsFiles} add={addFiles} />
        {props.left}
        <span class="box-gap" />
        {props.right}
      </div>
      {!readsFiles && writing.files.list.value.length > 0 && <p class="small soft box-doubt">{words.doubtful}</p>}
    </div>
  );
}

function Attach({ readsFiles, add }: { readsFiles: boolean; add: (files: FileList | null) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <IconButton name="clip" label={readsFiles ? words.attach : words.attachDoubtful} data-part="attach" onClick={() => input.current?.click()} />
      <input
        ref={input}
        id="attach"
        type="file"
        multiple
        hidden
        aria-label={words.attach}
        onChange={(event) => {
          add(event.currentTarget.files);
          // The same file can be chosen again.
          event.currentTarget.value = '';
        }}
      />
    </>
  );
}

function Left({ text: typed, most }: { text: string; most: number | undefined }) {
  const count = most !== undefined && typed.length > most * 0.9 ? characters(typed) : 0;
  if (most === undefined || count <= most * 0.9) return null;
  return count > most ? <span class="box-over">{words.tooLong(count, most)}</span> : <>{words.left(most - count)}</>;
}

/** As the gateway counts them: a pair of surrogates is one. */
export function characters(typed: string): number {
  let pairs = 0;
  for (let place = 0; place < typed.length; place += 1) {
    const unit = typed.charCodeAt(place);
    if (unit >= 0xd800 && unit < 0xdc00) pairs += 1;
  }
  return typed.length - pairs;
}

/** As high as its text; the style says how high at most. */
function grow(area: HTMLTextAreaElement | null): void {
  if (!area) return;
  area.style.height = 'auto';
  area.style.height = `${area.scrollHeight}px`;
}
