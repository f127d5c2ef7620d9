// Whether the browser tells of what happens while nobody looks.
import { allow, choice, refuse } from '../notify';
import { text } from '../text';

export function Notifications() {
  const now = choice.value;
  return (
    <section class="card" data-part="notifications" data-state={now}>
      <h2>{text.account.notifications}</h2>
      <p class="soft">{text.account.notificationsWords}</p>
      <p role="status">{text.account.notificationState[now]}</p>
      {now === 'on' && (
        <button type="button" class="button quiet" onClick={refuse}>{text.account.switchOff}</button>
      )}
      {(now === 'off' || now === 'unasked') && (
        <button type="button" class="button quiet" onClick={() => void allow()}>{text.account.switchOn}</button>
      )}
    </section>
  );
}
