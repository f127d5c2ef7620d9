// Setup: the first administrator sets a name and a password.

import { keepToken, send } from './api.js';
import { requiredValue, newPassword, oneTimePage } from './form.js';

const form = document.getElementById('setup');
const checkedPassword = newPassword(form);

oneTimePage('switchboard-setup-token', form, async (token) => {
  const { username } = form.elements;
  username.value = username.value.trim();
  requiredValue(username, 'Choose a user name.');
  const password = checkedPassword();
  keepToken(await send('POST', 'api/setup', { body: { token, username: username.value, password } }));
});
