// Where those who do not drive say what they would do. The agent does not hear it.
import { useState } from 'preact/hooks';
import { explain } from '../../account';
import { say } from '../../parts/toast';
import { text } from '../../text';
import type { OpenSession } from '../open';
import { characters, isTouch } from './box';
import type { Writing } from './writing';

const words = text.composer;

export function Suggest({ session, writing, driver }: { session: OpenSession; writing: Writing; driver: string }) {
  const [isBusy, setBusy] = useState(false);
  const most = session.limits.value?.promptChars;
  const send = async () => {
    const suggestion = writing.text.value;
    if (isBusy || suggestion.trim() === '') return;
    if (most !== undefined && characters(suggestion) > most) return void (writing.error.value = words.tooLong(characters(suggestion), most));
    setBusy(true);
    try {
      await session.send('SUGGEST', { text: suggestion });
      if (writing.text.value === suggestion) writing.text.value = '';
      say(words.suggested(driver));
    } catch (error) {
      writing.error.value = explain(error);
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
      <p class="small soft">{words.driven(driver)}</p>
      <div class="suggest-row">
        <textarea
          id="prompt"
          class="input"
          rows={1}
          aria-label={words.suggestLabel}
          placeholder={words.suggestPlaceholder}
          value={writing.text.value}
          onInput={(event) => {
            writing.text.value = event.currentTarget.value;
            writing.error.value = '';
          }}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing || isTouch()) return;
            event.preventDefault();
            void send();
          }}
        />
        <button type="submit" class="button" data-part="send" aria-disabled={isBusy || writing.text.value.trim() === ''}>{words.suggest}</button>
      </div>
      <p class="error small" role="alert">{writing.error.value}</p>
    </form>
  );
}
