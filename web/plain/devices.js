// Devices: one login in the list of devices.

// The order matters: most browsers also claim to be the ones further down.
const BROWSERS = [
  [/Edg/, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox|FxiOS/, 'Firefox'],
  [/Chrom|CriOS/, 'Chrome'],
  [/Safari/, 'Safari'],
];
const SYSTEMS = [
  [/iPhone|iPad/, 'iOS'],
  [/Android/, 'Android'],
  [/Windows/, 'Windows'],
  [/Mac OS/, 'macOS'],
  [/Linux/, 'Linux'],
];

const make = (tag, properties = {}) => Object.assign(document.createElement(tag), properties);
const when = (time) => new Date(time).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/** The row of a login; its button submits the id, except for the current login. */
export function deviceRow(entry) {
  const name = deviceName(entry);
  const lastUsed = entry.lastUsedAt ? `Last used ${when(entry.lastUsedAt)}` : 'Not used yet';

  const details = make('div', { title: entry.userAgent ?? '' });
  details.append(make('strong', { textContent: name }));
  for (const fact of [lastUsed, `Since ${when(entry.createdAt)}`, entry.address]) {
    if (fact) details.append(make('span', { textContent: fact }));
  }
  const row = make('li');
  row.append(details);
  if (entry.current) {
    row.append(make('span', { className: 'badge', textContent: 'This device' }));
  } else {
    const button = make('button', { className: 'quiet', type: 'submit', value: entry.id, textContent: 'Revoke' });
    button.dataset.busy = 'Revoking…';
    button.setAttribute('aria-label', `Revoke ${name}. ${lastUsed}`);
    row.append(button);
  }
  return row;
}

function deviceName({ kind, userAgent }) {
  if (kind === 'token') return 'Token from the command line';
  const known = (names) => names.find(([pattern]) => pattern.test(userAgent ?? ''))?.[1];
  const program = known(BROWSERS) ?? (userAgent?.slice(0, 40) || 'Unknown program');
  return [program, known(SYSTEMS)].filter(Boolean).join(' on ');
}
