// Notification settings: switches browser notifications on and off.
import { disableNotifications, enableNotifications, notificationSetting } from '../browser-notifications';
import { text } from '../text';

export function NotificationSettings() {
  const setting = notificationSetting.value;
  return (
    <section class="card" data-part="notifications" data-state={setting}>
      <h2>{text.account.notifications}</h2>
      <p class="soft">{text.account.notificationsWords}</p>
      <p role="status">{text.account.notificationState[setting]}</p>
      {setting === 'on' && (
        <button type="button" class="button quiet" onClick={disableNotifications}>{text.account.switchOff}</button>
      )}
      {(setting === 'off' || setting === 'unasked') && (
        <button type="button" class="button quiet" onClick={() => void enableNotifications()}>{text.account.switchOn}</button>
      )}
    </section>
  );
}
