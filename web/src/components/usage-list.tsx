// Usage list: each quota of an account and how much of it is used.
import type { Http } from '@switchboard/client';
import { text } from '../text';

const strings = text.usage;

const QUOTAS = [
  { name: 'sessions', show: strings.number },
  { name: 'journalBytes', show: strings.bytes },
  { name: 'attachmentBytes', show: strings.bytes },
  { name: 'messagesPerMinute', show: strings.number },
] as const;

export function UsageList({ usage }: { usage: Http.UsageBody }) {
  return (
    <dl class="usage">
      {QUOTAS.map(({ name, show }) => {
        const { used, max } = usage[name];
        const isUsedUp = used >= max;
        return (
          <div key={name} data-quota={name} data-state={isUsedUp ? 'used-up' : 'free'}>
            <dt>
              {strings.quotas[name]} {isUsedUp && <span class="badge error">{strings.usedUp}</span>}
            </dt>
            <dd>{strings.of(show(used), show(max))}</dd>
            <dd class="usage-bar" aria-hidden="true">
              <progress value={Math.min(used, max)} max={max} />
            </dd>
          </div>
        );
      })}
    </dl>
  );
}
