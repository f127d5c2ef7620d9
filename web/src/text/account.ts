/** Words of the doors and of one's own account. */
export const account = {
  signedOut: 'This login has ended. Log in again.',
};
