// Text: every string of the page, by area. To translate the page, translate the files in `text/`.
import { account } from './text/account';
import { admin } from './text/admin';
import { common } from './text/common';
import { composer } from './text/composer';
import { questions } from './text/questions';
import { sessions } from './text/sessions';
import { transcript } from './text/transcript';
import { usage } from './text/usage';

export const text = { common, account, sessions, transcript, composer, questions, usage, admin };
