// Suggestion form: proposes a prompt to the member in control. The agent does not receive it.
import { useState } from 'preact/hooks';
import { explain } from '../../auth';
import { showToast } from '../../components/toast';
import { text } from '../../text';
import type { OpenSession } from '../open-session';
import type { ComposerState } from './composer-state';
import { countCharacters, isTouch } from './prompt-box';

const strings = text.composer;

export function SuggestionForm({ session, composer, controller }: { session: OpenSession; composer: ComposerState; controller: string }) {
  const [isBusy, setBusy] = useState(false);
  const maxChars = session.limits.value?.promptChars;
  const send = async () => {
    const suggestion = composer.text.value;
    if (isBusy || suggestion.trim() === '') return;
    if (maxChars !== undefined && countCharacters(suggestion) > maxChars) return void (composer.error.value = strings.tooLong(countCharacters(suggestion), maxChars));
    setBusy(true);
    try {
      await session.send('SUGGEST', { text: suggestion });
      if (composer.text.value === suggestion) composer.text.value = '';
      showToast(strings.suggested(controller));
    } catch (error) {
      composer.error.value = explain(error);
    }
    setBusy(false);
  };
  return (
    <form
      class="suggest"
      data-part="suggest"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <p class="small soft">{strings.driven(controller)}</p>
      <div class="suggest-row">
        <textarea
          id="prompt"
          class="input"
          rows={1}
          aria-label={strings.suggestLabel}
          placeholder={strings.suggestPlaceholder}
          value={composer.text.value}
          onInput={(event) => {
            composer.text.value = event.currentTarget.value;
            composer.error.value = '';
          }}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing || isTouch()) return;
            event.preventDefault();
            void send();
          }}
        />
        <button type="submit" class="button" data-part="send" aria-disabled={isBusy || composer.text.value.trim() === ''}>{strings.suggest}</button>
      </div>
      <p class="error small" role="alert">{composer.error.value}</p>
    </form>
  );
}
