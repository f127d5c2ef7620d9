// Every word that the page says, in one place: to translate the page, translate what is in `text/`.
import { account } from './text/account';
import { admin } from './text/admin';
import { common } from './text/common';
import { composer } from './text/composer';
import { questions } from './text/questions';
import { sessions } from './text/sessions';
import { transcript } from './text/transcript';

export const text = { common, account, sessions, transcript, composer, questions, admin };
