// One entry of the conversation.
import { Component } from 'preact';
import { standing } from '../../account';
import { Icon } from '../../parts/icon';
import { When } from '../../parts/when';
import { text } from '../../text';
import { Markdown } from '../markdown/markdown';
import type { OpenSession } from '../open';
import { QuestionCard } from '../questions/card';
import type { AnswerEntry, EndEntry, Entry, NoteEntry, PromptEntry } from '../timeline';
import { Actions } from './actions';
import { Files } from './files';
import { Thought } from './thought';
import { Tool } from './tool';

interface Shown {
  session: OpenSession;
  entry: Entry;
  /** Nothing came after it, and its run goes on. */
  isLive: boolean;
}

/** Drawn again only if it is another one: the conversation has thousands of them. */
export class EntryView extends Component<Shown> {
  override shouldComponentUpdate({ session, entry, isLive }: Shown): boolean {
    return entry !== this.props.entry || isLive !== this.props.isLive || session !== this.props.session;
  }

  render() {
    const { session, entry, isLive } = this.props;
    // What was withdrawn leaves nothing to read.
    if (entry.kind === 'answer' && entry.isComplete && entry.text === '') return null;
    const isComplete = entry.kind === 'answer' ? String(entry.isComplete) : undefined;
    return (
      <article class={`entry ${entry.kind}-entry`} data-entry={entry.kind} data-key={entry.key} data-complete={isComplete}>
        <Inside session={session} entry={entry} isLive={isLive} />
      </article>
    );
  }
}

function Inside({ session, entry, isLive }: Shown) {
  switch (entry.kind) {
    case 'prompt':
      return <Prompt session={session} entry={entry} />;
    case 'answer':
      return <Answer session={session} entry={entry} />;
    case 'thought':
      return <Thought entry={entry} isLive={isLive && !entry.isComplete} />;
    case 'tool':
      return <Tool entry={entry} />;
    case 'question':
      return <QuestionCard session={session} entry={entry} />;
    case 'note':
      return <Note entry={entry} />;
    case 'end':
      return <End session={session} entry={entry} />;
  }
}

function Prompt({ session, entry }: { session: OpenSession; entry: PromptEntry }) {
  const now = standing.value;
  const isMine = entry.by === undefined || (now.is === 'in' && now.user.username === entry.by);
  return (
    <>
      <div class="bubble">
        <h3 class={isMine ? 'heard' : 'author'}>{isMine ? text.transcript.you : entry.by}</h3>
        {entry.text && <p class="prompt-text">{entry.text}</p>}
        <Files sessionId={session.id} files={entry.files} />
      </div>
      <div class="under">
        <span class="soft small">
          {entry.mode === 'plan' && <span class="badge">{text.transcript.planning}</span>} <When at={entry.at} />
        </span>
        <Actions session={session} entry={entry} />
      </div>
    </>
  );
}

function Answer({ session, entry }: { session: OpenSession; entry: AnswerEntry }) {
  return (
    <>
      {entry.role === 'system' && <p class="soft small">{text.transcript.system}</p>}
      <Markdown text={entry.text} isComplete={entry.isComplete} />
      {entry.isComplete && (
        <div class="under">
          <Actions session={session} entry={entry} />
        </div>
      )}
    </>
  );
}

function Note({ entry: { level, text: words, by } }: { entry: NoteEntry }) {
  return (
    <p class={`note ${by === undefined ? level : 'suggestion'}`}>
      <Icon name={by !== undefined ? 'person' : level === 'info' ? 'bell' : 'warn'} />
      <span>
        <strong>{by === undefined ? text.transcript.note[level] : text.transcript.suggestion(by)}</strong> {words}
      </span>
    </p>
  );
}

function End({ session, entry }: { session: OpenSession; entry: EndEntry }) {
  const { status, error } = entry;
  if (status === 'cancelled') {
    return (
      <div class="under">
        <span class="soft small">{text.transcript.cancelled}</span>
        <Actions session={session} entry={entry} />
      </div>
    );
  }
  const { what, then } = text.transcript.ends[error?.code ?? ''] ?? text.transcript.end;
  return (
    <div class="error end-error">
      <Icon name="warn" />
      <div>
        <strong>{what}</strong> {error?.message !== what && error?.message} {then}
        {error && <span class="small end-code">{error.code}</span>}
      </div>
    </div>
  );
}
