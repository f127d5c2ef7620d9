// The page begins here.
import { render } from 'preact';
import { start } from './account';
import { App } from './app';
import { door } from './place';

const root = document.getElementById('page');
if (root) {
  root.textContent = '';
  render(<App />, root);
  // Whoever comes with a link sets a password; who was signed in before does not matter then.
  if (door.value === 'main') void start();
}
