// Main: mounts the page.
import { render } from 'preact';
import { App } from './app';
import { resumeLogin } from './auth';
import { entryPage } from './route';

const root = document.getElementById('page');
if (root) {
  root.textContent = '';
  render(<App />, root);
  // A setup or invitation link needs no earlier login.
  if (entryPage.value === 'main') void resumeLogin();
}
