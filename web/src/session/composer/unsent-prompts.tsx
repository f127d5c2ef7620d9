// Unsent prompts: sent prompts that are not confirmed.
import { text } from '../../text';
import type { OpenSession } from '../open-session';
import type { ComposerState, SentPrompt } from './composer-state';

const strings = text.composer;

export function UnsentPrompts({ composer, session }: { composer: ComposerState; session: OpenSession }) {
  const prompts = composer.pending.value;
  const isLive = session.isLive.value;
  return (
    <div class="unsent-prompts" role="status">
      {prompts.map((prompt) => (
        <div class={`unsent-prompt ${prompt.state}`} key={prompt.id} data-part="letter" data-state={prompt.state}>
          <p class="unsent-text">{prompt.text}</p>
          <p class="small soft">{describeState(prompt, isLive)}</p>
          {prompt.state === 'unsent' && (
            <p class="unsent-buttons">
              <button type="button" class="button quiet small" onClick={() => composer.moveToBox(prompt)}>{strings.reopen}</button>
              <button type="button" class="button quiet small" onClick={() => composer.remove(prompt.id)}>{strings.discard}</button>
            </p>
          )}
        </div>
      ))}
    </div>
  );
}

function describeState(prompt: SentPrompt, isLive: boolean): string {
  switch (prompt.state) {
    case 'unsent':
      return `${strings.unsent} ${prompt.error ?? ''}`;
    case 'checking':
      return strings.checking;
    default:
      return isLive ? strings.sending : strings.sendingOffline;
  }
}
