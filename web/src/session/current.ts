// The session that is on the screen, for those parts of the page that are not inside it.
import { signal } from '@preact/signals';
import type { OpenSession } from './open';

export const current = signal<OpenSession | undefined>(undefined);
