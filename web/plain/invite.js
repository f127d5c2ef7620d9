// Invite: an invited user sets a password.

import { keepToken, send } from './api.js';
import { newPassword, oneTimePage } from './form.js';

const form = document.getElementById('invite');
const checkedPassword = newPassword(form);

oneTimePage('switchboard-invite-token', form, async (token) => {
  const password = checkedPassword();
  const { user } = keepToken(await send('POST', 'api/invites/accept', { body: { token, password } }));
  // For password managers, which look for the name beside the password when the page is left.
  form.elements.username.value = user.username;
});
