// What has left the box and is not known to have arrived.
import { text } from '../../text';
import type { OpenSession } from '../open';
import type { Sent, Writing } from './writing';

const words = text.composer;

export function Letters({ writing, session }: { writing: Writing; session: OpenSession }) {
  const letters = writing.letters.value;
  const isLive = session.connection.value.is === 'live' || session.connection.value.is === 'resumed';
  return (
    <div class="letters" role="status">
      {letters.map((letter) => (
        <div class={`letter ${letter.state}`} key={letter.id} data-part="letter" data-state={letter.state}>
          <p class="letter-text">{letter.text}</p>
          <p class="small soft">{said(letter, isLive)}</p>
          {letter.state === 'unsent' && (
            <p class="letter-buttons">
              <button type="button" class="button quiet small" onClick={() => writing.reopen(letter)}>{words.reopen}</button>
              <button type="button" class="button quiet small" onClick={() => writing.drop(letter.id)}>{words.discard}</button>
            </p>
          )}
        </div>
      ))}
    </div>
  );
}

function said(letter: Sent, isLive: boolean): string {
  switch (letter.state) {
    case 'unsent':
      return `${words.unsent} ${letter.why ?? ''}`;
    case 'checking':
      return words.checking;
    default:
      return isLive ? words.sending : words.sendingOffline;
  }
}
