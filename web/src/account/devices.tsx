// Devices: where the account is signed in.
import type { Http } from '@switchboard/client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { explain, request } from '../auth';
import { ConfirmDialog } from '../components/confirm-dialog';
import { RelativeTime } from '../components/relative-time';
import { useIsMounted } from '../components/use-is-mounted';
import { text } from '../text';
import { deviceName } from './device-name';

type Device = Http.LoginBody;

export function Devices() {
  const [devices, setDevices] = useState<readonly Device[]>();
  const [error, setError] = useState('');
  const [revoking, setRevoking] = useState<Device>();
  const [status, setStatus] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  const isAlive = useIsMounted();
  const load = async () => {
    setError('');
    try {
      const { logins } = await request<Http.LoginsBody>('GET', '/api/auth/logins');
      if (isAlive.current) setDevices(logins);
    } catch (failure) {
      if (isAlive.current) setError(explain(failure));
    }
  };
  useEffect(() => void load(), []);
  const revoke = async (device: Device) => {
    await request('DELETE', `/api/auth/logins/${encodeURIComponent(device.id)}`);
    setStatus(text.account.revoked(deviceName(device)));
    await load();
    heading.current?.focus();
  };
  return (
    <section class="card" data-part="devices">
      <h2 ref={heading} tabIndex={-1}>{text.account.devices}</h2>
      <p class="soft">{text.account.devicesWords}</p>
      {!devices && !error && <p class="soft">{text.common.loading}</p>}
      <ul class="plain devices">
        {devices?.map((device) => (
          <DeviceItem key={device.id} device={device} onRevoke={() => setRevoking(device)} />
        ))}
      </ul>
      <p class="error" role="alert">{error}</p>
      <p class="status small soft" role="status">{status}</p>
      <button type="button" class="button quiet small" onClick={() => void load()}>{text.account.reload}</button>
      {revoking && (
        <ConfirmDialog title={text.account.revokeTitle} label={text.account.revoke} busyLabel={text.account.revoking} onClose={() => setRevoking(undefined)} action={() => revoke(revoking)}>
          <p>{text.account.revokeWords(deviceName(revoking))}</p>
        </ConfirmDialog>
      )}
    </section>
  );
}

function DeviceItem({ device, onRevoke }: { device: Device; onRevoke: () => void }) {
  const name = deviceName(device);
  return (
    <li data-login={device.id} title={device.userAgent ?? undefined}>
      <div>
        <strong>{name}</strong> {device.current && <span class="badge good">{text.account.thisDevice}</span>}
        <div class="small soft facts">
          <span>
            {text.account.lastUsed} <RelativeTime at={device.lastUsedAt} />
          </span>
          <span>
            {text.account.since} <RelativeTime at={device.createdAt} />
          </span>
          {device.address && <span>{text.account.from(device.address)}</span>}
        </div>
      </div>
      {!device.current && (
        <button type="button" class="button danger small" aria-label={text.account.revokeOne(name)} onClick={onRevoke}>
          {text.account.revoke}
        </button>
      )}
    </li>
  );
}
