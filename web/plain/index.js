// Index: the login form, and the account with its devices, token and password.

import { account, keepToken, call, clearToken, onSignedOut, refresh, renew, send } from './api.js';
import { deviceRow } from './devices.js';
import { requiredValue, newPassword, onSubmit, makeRevealable } from './form.js';

const COPY_WORTH_MS = 120000;

const byId = (id) => document.getElementById(id);
const views = ['connect', 'login', 'account'].map(byId);
const [connect, login, accountView] = views;
const change = byId('change');
const checkedPassword = newPassword(change);

function show(view, focused) {
  for (const each of views) each.hidden = each !== view;
  focused?.focus();
}

function showLogin(notice = '') {
  clearToken();
  offerToken(null);
  byId('login-notice').textContent = notice;
  const { username, password } = login.elements;
  show(login, username.value ? password : username);
}

function showAccount() {
  for (const line of accountView.querySelectorAll('[role=alert], [role=status]')) line.textContent = '';
  showUser();
  show(accountView, accountView.querySelector('h1'));
  reloadDevices();
}

// From the token in use: the cookie is shared, and another tab may have logged in as another user.
function showUser() {
  const { username, role } = account().user;
  const usernameField = change.elements.username;
  if (usernameField.value !== username) change.reset();
  usernameField.value = byId('name').textContent = username;
  byId('role').textContent = role;
}

onSubmit(connect, async () => {
  try {
    await refresh();
  } catch (error) {
    if (error.status === 401) return showLogin();
    connect.querySelector('h1').textContent = 'Not connected';
    throw error;
  }
  showAccount();
});

makeRevealable(login);
onSubmit(login, async () => {
  byId('login-notice').textContent = '';
  const { username, password } = login.elements;
  username.value = username.value.trim();
  requiredValue(username, 'Type your user name.');
  requiredValue(password, 'Type your password.');
  try {
    keepToken(await send('POST', 'api/auth/login', { body: { username: username.value, password: password.value } }));
  } catch (error) {
    if (error.status === 401) error.field = password;
    throw error;
  }
  showAccount();
  login.reset();
});

onSubmit(byId('logout'), async () => {
  await call('POST', 'api/auth/logout');
  change.reset();
  showLogin('You are logged out.');
});

onSignedOut(() => showLogin('You were signed out. Log in again to go on.'));

const reloadDevices = () => byId('devices').requestSubmit(byId('reload'));

onSubmit(byId('devices'), async (button) => {
  const revoked = button.value;
  if (revoked) await call('DELETE', `api/auth/logins/${encodeURIComponent(revoked)}`);
  const { logins } = await call('GET', 'api/auth/logins');
  showUser();
  byId('device-list').replaceChildren(...logins.map(deviceRow));
  if (!revoked) return '';
  byId('devices-title').focus();
  return 'Revoked.';
});

byId('example-url').textContent = new URL('api/auth/me', document.baseURI);

function offerToken(token) {
  byId('token').value = token ?? '';
  byId('token').hidden = byId('token-label').hidden = !token;
}

onSubmit(byId('copy'), async () => {
  offerToken(null);
  if (new Date(account().expiresAt) - Date.now() < COPY_WORTH_MS) await renew();
  const { token, expiresAt } = account();
  const expiry = `It expires at ${new Date(expiresAt).toLocaleTimeString(undefined, { timeStyle: 'short' })}.`;
  try {
    await navigator.clipboard.writeText(token);
    return `Copied. ${expiry}`;
  } catch {
    // Browsers refuse the clipboard on plain http.
    offerToken(token);
    byId('token').select();
    return expiry;
  }
});

onSubmit(change, async () => {
  const { current } = change.elements;
  const body = { currentPassword: requiredValue(current, 'Type your current password.'), newPassword: checkedPassword() };
  // A wrong current password can be a 401 too. Checking the token first keeps it from being sent twice.
  await call('GET', 'api/auth/me');
  try {
    await send('POST', 'api/auth/password', { body, token: account().token });
  } catch (error) {
    if (error.status === 401 || error.status === 403) error.field = current;
    throw error;
  }
  change.reset();
  reloadDevices();
  return 'The password is changed. All other devices are signed out.';
});

show(connect);
connect.requestSubmit();
