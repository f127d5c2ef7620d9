// Entry view: renders one timeline entry.
import { Component } from 'preact';
import { currentUser } from '../../auth';
import { Icon } from '../../components/icon';
import { RelativeTime } from '../../components/relative-time';
import { text } from '../../text';
import { Markdown } from '../markdown/markdown';
import type { OpenSession } from '../open-session';
import { QuestionCard } from '../questions/question-card';
import type { AnswerEntry, EndEntry, Entry, NoteEntry, PromptEntry } from '../timeline';
import { EntryActions } from './entry-actions';
import { Plan } from './plan';
import { PromptFiles } from './prompt-files';
import { RetryButton } from './retry-button';
import { Thought } from './thought';
import { ToolCard } from './tool-card';

interface EntryProps {
  session: OpenSession;
  entry: Entry;
  /** It is the last entry and its run continues; for a plan: its run continues. */
  isLive: boolean;
}

/** Rerenders only if the entry has changed: a conversation has thousands. */
export class EntryView extends Component<EntryProps> {
  override shouldComponentUpdate({ session, entry, isLive }: EntryProps): boolean {
    return entry !== this.props.entry || isLive !== this.props.isLive || session !== this.props.session;
  }

  render() {
    const { session, entry, isLive } = this.props;
    // A withdrawn answer is empty.
    if (entry.kind === 'answer' && entry.isComplete && entry.text === '') return null;
    // Pinned below the transcript.
    if (entry.kind === 'plan' && isLive) return null;
    const isComplete = entry.kind === 'answer' ? String(entry.isComplete) : undefined;
    return (
      <article class={`entry ${entry.kind}-entry`} data-entry={entry.kind} data-key={entry.key} data-complete={isComplete}>
        <EntryContent session={session} entry={entry} isLive={isLive} />
      </article>
    );
  }
}

function EntryContent({ session, entry, isLive }: EntryProps) {
  switch (entry.kind) {
    case 'prompt':
      return <PromptView session={session} entry={entry} />;
    case 'answer':
      return <AnswerView session={session} entry={entry} />;
    case 'thought':
      return <Thought entry={entry} isLive={isLive && !entry.isComplete} />;
    case 'tool':
      return <ToolCard entry={entry} />;
    case 'question':
      return <QuestionCard session={session} entry={entry} />;
    case 'plan':
      return <Plan steps={entry.steps} />;
    case 'note':
      return <NoteView entry={entry} />;
    case 'end':
      return <EndView session={session} entry={entry} />;
  }
}

function PromptView({ session, entry }: { session: OpenSession; entry: PromptEntry }) {
  const isOwn = entry.by === undefined || currentUser()?.username === entry.by;
  return (
    <>
      <div class="bubble">
        <h3 class={isOwn ? 'visually-hidden' : 'author'}>{isOwn ? text.transcript.you : entry.by}</h3>
        {entry.text && <p class="prompt-text">{entry.text}</p>}
        <PromptFiles sessionId={session.id} files={entry.files} />
      </div>
      <div class="under">
        <span class="soft small">
          {entry.mode === 'plan' && <span class="badge">{text.transcript.planning}</span>} <RelativeTime at={entry.at} />
        </span>
        <EntryActions session={session} entry={entry} />
      </div>
    </>
  );
}

function AnswerView({ session, entry }: { session: OpenSession; entry: AnswerEntry }) {
  return (
    <>
      {entry.role === 'system' && <p class="soft small">{text.transcript.system}</p>}
      {entry.isPlain ? <p class="plain-text">{entry.text}</p> : <Markdown text={entry.text} isComplete={entry.isComplete} />}
      {entry.sources && <p class="soft small">{text.transcript.sources(entry.sources)}</p>}
      {entry.isComplete && (
        <div class="under">
          <EntryActions session={session} entry={entry} />
        </div>
      )}
    </>
  );
}

function NoteView({ entry: { level, text: content, by } }: { entry: NoteEntry }) {
  return (
    <p class={`note ${by === undefined ? level : 'suggestion'}`}>
      <Icon name={by !== undefined ? 'person' : level === 'info' ? 'bell' : 'warn'} />
      <span>
        <strong>{by === undefined ? text.transcript.note[level] : text.transcript.suggestion(by)}</strong> {content}
      </span>
    </p>
  );
}

function EndView({ session, entry }: { session: OpenSession; entry: EndEntry }) {
  const { status, error } = entry;
  if (status === 'cancelled') {
    return (
      <div class="under">
        <span class="soft small">{text.transcript.cancelled}</span>
        <EntryActions session={session} entry={entry} />
      </div>
    );
  }
  const { what, then } = text.transcript.endsByCause[error?.cause ?? ''] ?? text.transcript.ends[error?.code ?? ''] ?? text.transcript.end;
  return (
    <div class="error end-error" data-cause={error?.cause}>
      <Icon name="warn" />
      <div class="end-words">
        <p>
          <strong>{what}</strong> {then}
        </p>
        {error && error.message !== what && (
          <details class="small">
            <summary>{text.transcript.details}</summary>
            <p>{error.message}</p>
            <p class="mono">{error.code}</p>
          </details>
        )}
        <RetryButton session={session} entry={entry} />
      </div>
    </div>
  );
}
