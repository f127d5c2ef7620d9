// Prompt box: a text field that grows, takes files and completes commands.
import type { ComponentChildren, TargetedKeyboardEvent } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { IconButton } from '../../components/icon';
import { text } from '../../text';
import { Attachments } from './attachments';
import { CompletionList, useCommandCompletion } from './command-completion';
import type { ComposerState } from './composer-state';
import type { PromptKind } from './drafts';
import { isDragging, useFileDrop } from './file-drop';
import type { Command } from './query-results';

const strings = text.composer;
/** On a touch screen Enter starts a new line, and the button sends. */
export const isTouch = () => matchMedia('(hover: none) and (pointer: coarse)').matches;

export interface PromptBoxProps {
  composer: ComposerState;
  label: string;
  placeholder: string;
  /** The longest prompt. */
  maxChars: number | undefined;
  /** The largest file. */
  maxFileBytes: number | undefined;
  /** Whether the agent reads files. */
  readsFiles: boolean;
  commands: () => readonly Command[];
  onSend: (kind: PromptKind) => void;
  /** Handles Enter in place of sending; true if it did. */
  onEnter?: () => boolean;
  /** Buttons: `left` beside the one for files, `right` at the end. */
  left?: ComponentChildren;
  right: ComponentChildren;
}

export function PromptBox(props: PromptBoxProps) {
  const { composer, label, placeholder, maxChars, maxFileBytes, readsFiles, commands, onSend } = props;
  const area = useRef<HTMLTextAreaElement>(null);
  const list = useCommandCompletion(composer, area, commands);
  const value = composer.text.value;
  useLayoutEffect(() => fitHeight(area.current), [value]);

  const onKeyDown = (event: TargetedKeyboardEvent<HTMLTextAreaElement>) => {
    // Key code 229: some browsers report it during text composition.
    if (event.isComposing || event.keyCode === 229 || list.onKeyDown(event) || event.key !== 'Enter' || event.shiftKey) return;
    const kind = event.ctrlKey || event.metaKey ? 'steer' : event.altKey ? 'followUp' : 'prompt';
    if (kind === 'prompt' && isTouch()) return;
    event.preventDefault();
    if (kind === 'prompt' && props.onEnter?.()) return;
    onSend(kind);
  };
  const addFiles = (files: FileList | undefined | null) => {
    if (!files || files.length === 0) return false;
    composer.files.add(files, maxFileBytes);
    return true;
  };
  useFileDrop(addFiles);
  return (
    <div class={`box ${isDragging.value ? 'over' : ''}`}>
      {isDragging.value && <p class="drop-zone" data-part="drop">{strings.drop}</p>}
      <CompletionList list={list} />
      <Attachments files={composer.files} />
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
          composer.text.value = event.currentTarget.value;
          composer.error.value = '';
          list.update();
        }}
        onSelect={list.update}
        onBlur={list.close}
        onKeyDown={onKeyDown}
        onPaste={(event) => {
          // Copied text often comes with an image of itself; the text is meant.
          const data = event.clipboardData;
          if (data && !data.types.includes('text/plain') && addFiles(data.files)) event.preventDefault();
        }}
      />
      <p id="prompt-left" class="box-left small" role="status"><CharsLeft typed={value} maxChars={maxChars} /></p>
      <p id="prompt-error" class="error small" role="alert">{composer.error.value}</p>
      <div class="box-buttons">
        <AttachButton readsFiles={readsFiles} add={addFiles} />
        {props.left}
        <span class="box-gap" />
        {props.right}
      </div>
      {!readsFiles && composer.files.list.value.length > 0 && <p class="small soft box-note">{strings.doubtful}</p>}
    </div>
  );
}

function AttachButton({ readsFiles, add }: { readsFiles: boolean; add: (files: FileList | null) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <IconButton name="clip" label={readsFiles ? strings.attach : strings.attachDoubtful} data-part="attach" onClick={() => input.current?.click()} />
      <input
        ref={input}
        id="attach"
        type="file"
        multiple
        hidden
        aria-label={strings.attach}
        onChange={(event) => {
          add(event.currentTarget.files);
          // So that the same file can be chosen again.
          event.currentTarget.value = '';
        }}
      />
    </>
  );
}

function CharsLeft({ typed, maxChars }: { typed: string; maxChars: number | undefined }) {
  const count = maxChars !== undefined && typed.length > maxChars * 0.9 ? countCharacters(typed) : 0;
  if (maxChars === undefined || count <= maxChars * 0.9) return null;
  return count > maxChars ? <span class="box-over">{strings.tooLong(count, maxChars)}</span> : <>{strings.left(maxChars - count)}</>;
}

/** As the gateway counts: a surrogate pair is one character. */
export function countCharacters(typed: string): number {
  let pairs = 0;
  for (let index = 0; index < typed.length; index += 1) {
    const unit = typed.charCodeAt(index);
    if (unit >= 0xd800 && unit < 0xdc00) pairs += 1;
  }
  return typed.length - pairs;
}

/** As high as the text, up to the limit in the stylesheet. */
function fitHeight(area: HTMLTextAreaElement | null): void {
  if (!area) return;
  area.style.height = 'auto';
  area.style.height = `${area.scrollHeight}px`;
}
