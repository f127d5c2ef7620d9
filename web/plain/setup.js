// The first administrator sets a name and a password.

import { adopt, send } from './api.js';
import { filled, newPassword, oneTimePage } from './form.js';

const form = document.getElementById('setup');
const checkedPassword = newPassword(form);

oneTimePage('switchboard-setup-token', form, async (token) => {
  const { username } = form.elements;
  username.value = username.value.trim();
  filled(username, 'Choose a user name.');
  const password = checkedPassword();
  adopt(await send('POST', 'api/setup', { body: { token, username: username.value, password } }));
});
