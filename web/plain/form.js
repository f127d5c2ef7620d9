// Forms: show progress and never lose what was typed.

import { Problem, pause } from './api.js';

const MIN_PASSWORD_CHARS = 8;

/** Runs `action(button)` on submit. Its result is shown as status, its error as error. */
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
    // `disabled` would lose the focus.
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

// On the button: in the alert a screen reader would read it every second.
async function countDown(secs, button) {
  const until = Date.now() + secs * 1000;
  for (let left = secs; left > 0; left = Math.ceil((until - Date.now()) / 1000)) {
    button.textContent = `Try again in ${left} s`;
    await pause(250);
  }
}

/** The value of a field that must not be empty. */
export function requiredValue(field, message) {
  if (!field.value) throw new Problem(message, { field });
  return field.value;
}

function onEdit(form, update) {
  form.addEventListener('input', update);
  // The event fires before the fields are emptied.
  form.addEventListener('reset', () => setTimeout(update));
  update();
}

/** The checkbox `show` makes the passwords of a form readable. */
export function makeRevealable(form) {
  onEdit(form, () => {
    for (const field of form.querySelectorAll('.secret')) field.type = form.elements.show.checked ? 'text' : 'password';
  });
}

/**
 * Live hints for a form with the fields `password`, `repeat` and `show`. Returns the check for submit: it
 * returns the password or throws a `Problem`.
 */
export function newPassword(form) {
  const { password, repeat } = form.elements;
  const [lengthHint, repeatHint] = [password, repeat]
    .map((field) => document.getElementById(field.getAttribute('aria-describedby')));
  // Characters, not UTF-16 units.
  const missing = () => MIN_PASSWORD_CHARS - [...password.value].length;
  const matches = () => password.value === repeat.value;

  const setHint = (line, message, isGood) => {
    line.textContent = message;
    line.classList.toggle('good', isGood);
  };
  const update = () => {
    if (!password.value) setHint(lengthHint, `At least ${MIN_PASSWORD_CHARS} characters.`, false);
    else if (missing() > 0) setHint(lengthHint, `At least ${MIN_PASSWORD_CHARS} characters: ${missing()} more.`, false);
    else setHint(lengthHint, 'Long enough.', true);

    // An unfinished repetition is not a mistake yet.
    if (!repeat.value || (password.value.startsWith(repeat.value) && !matches())) setHint(repeatHint, 'The same once more.', false);
    else if (matches()) setHint(repeatHint, 'Both are the same.', true);
    else setHint(repeatHint, 'The two are not the same.', false);
  };
  onEdit(form, update);
  makeRevealable(form);

  return () => {
    if (missing() > 0) throw new Problem(`The password needs at least ${MIN_PASSWORD_CHARS} characters.`, { field: password });
    if (!matches()) throw new Problem('The two passwords are not the same.', { field: repeat });
    return password.value;
  };
}

/**
 * A page with one form behind a one-time link: `finish(token)` sends the form. The token moves from the
 * address bar, where others can see it, to sessionStorage, so that a reload still finds it.
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
  // A second link opened in the same tab changes only the fragment.
  addEventListener('hashchange', show);
  show();
}
