// Forms that say what goes on and never lose what was typed.

import { Problem, pause } from './api.js';

const MIN_PASSWORD_CHARS = 8;

/** Runs `action(button)` on submit. What it returns is said as status, what it throws as error. */
export function onSubmit(form, action) {
  const alertLine = form.querySelector('.error');
  const statusLine = form.querySelector('.status');
  form.addEventListener('input', ({ target }) => {
    if (!target.hasAttribute('aria-invalid')) return;
    target.removeAttribute('aria-invalid');
    alertLine.textContent = '';
  });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (form.dataset.waiting) return;
    const button = event.submitter ?? form.querySelector('[type=submit]');
    const label = button.textContent;
    form.dataset.waiting = 'yes';
    // Not `disabled`, which would take the focus away.
    button.setAttribute('aria-disabled', 'true');
    button.textContent = button.dataset.busy ?? label;
    alertLine.textContent = statusLine.textContent = '';
    for (const field of form.querySelectorAll('[aria-invalid]')) field.removeAttribute('aria-invalid');
    try {
      statusLine.textContent = (await action(button)) ?? '';
    } catch (error) {
      explain(error, alertLine);
      if (error.retryAfterSecs) {
        await countDown(error.retryAfterSecs, button);
        statusLine.textContent = 'You can try again now.';
      }
    }
    delete form.dataset.waiting;
    button.removeAttribute('aria-disabled');
    button.textContent = label;
  });
}

function explain(error, alertLine) {
  if (!(error instanceof Problem)) {
    console.error(error);
    alertLine.textContent = 'This page has a fault. Reload it and try again.';
    return;
  }
  alertLine.textContent = error.message;
  error.field?.setAttribute('aria-invalid', 'true');
  error.field?.focus();
}

// On the button and not in the alert, which would be read out every second.
async function countDown(secs, button) {
  const until = Date.now() + secs * 1000;
  for (let left = secs; left > 0; left = Math.ceil((until - Date.now()) / 1000)) {
    button.textContent = `Try again in ${left} s`;
    await pause(250);
  }
}

/** The text of a field that may not be empty. */
export function filled(field, words) {
  if (!field.value) throw new Problem(words, { field });
  return field.value;
}

function onEdit(form, update) {
  form.addEventListener('input', update);
  // The event comes before the fields are emptied.
  form.addEventListener('reset', () => setTimeout(update));
  update();
}

/** Lets the box `show` make the passwords of a form readable. */
export function revealable(form) {
  onEdit(form, () => {
    for (const field of form.querySelectorAll('.secret')) field.type = form.elements.show.checked ? 'text' : 'password';
  });
}

/**
 * Gives a form with the fields `password`, `repeat` and `show` its live hints.
 * Returns the check to call on submit: it answers with the password, or throws what is wrong with it.
 */
export function newPassword(form) {
  const { password, repeat } = form.elements;
  const [lengthHint, repeatHint] = [password, repeat]
    .map((field) => document.getElementById(field.getAttribute('aria-describedby')));
  // Characters as a person counts them, not UTF-16 units.
  const missing = () => MIN_PASSWORD_CHARS - [...password.value].length;
  const matches = () => password.value === repeat.value;

  const hint = (line, words, good) => {
    line.textContent = words;
    line.classList.toggle('good', good);
  };
  const update = () => {
    if (!password.value) hint(lengthHint, `At least ${MIN_PASSWORD_CHARS} characters.`, false);
    else if (missing() > 0) hint(lengthHint, `At least ${MIN_PASSWORD_CHARS} characters: ${missing()} more.`, false);
    else hint(lengthHint, 'Long enough.', true);

    // Half a word is not a mistake yet.
    if (!repeat.value || (password.value.startsWith(repeat.value) && !matches())) hint(repeatHint, 'The same once more.', false);
    else if (matches()) hint(repeatHint, 'Both are the same.', true);
    else hint(repeatHint, 'The two are not the same.', false);
  };
  onEdit(form, update);
  revealable(form);

  return () => {
    if (missing() > 0) throw new Problem(`The password needs at least ${MIN_PASSWORD_CHARS} characters.`, { field: password });
    if (!matches()) throw new Problem('The two passwords are not the same.', { field: repeat });
    return password.value;
  };
}

/**
 * A page that is one form behind a one-time link: `finish(token)` sends the form.
 * The token moves from the address bar, where others see it, to this tab's storage, so that a reload works.
 */
export function oneTimePage(key, form, finish) {
  const show = () => {
    const fromLink = new URLSearchParams(location.hash.slice(1)).get('t');
    if (fromLink) {
      sessionStorage.setItem(key, fromLink);
      history.replaceState(null, '', location.pathname + location.search);
    }
    const token = sessionStorage.getItem(key);
    form.hidden = !token;
    document.getElementById('missing').hidden = Boolean(token);
    if (token) form.querySelector('input:not([hidden])').focus();
  };
  onSubmit(form, async () => {
    await finish(sessionStorage.getItem(key));
    sessionStorage.removeItem(key);
    location.replace('./');
    // The form stays busy until the page is gone: a second submit would have no token.
    await new Promise(() => {});
  });
  // A second link opened in the same tab changes the fragment only.
  addEventListener('hashchange', show);
  show();
}
