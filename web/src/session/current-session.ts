// Current session: the open session, for parts of the page outside of it.
import { signal } from '@preact/signals';
import type { OpenSession } from './open-session';

export const currentSession = signal<OpenSession | undefined>(undefined);
