/** Words that more than one part of the page uses. */
export const common = {
  name: 'Switchboard',
  titled: (title: string) => `${title} · Switchboard`,
  moment: 'One moment…',
  unreachable: 'The server cannot be reached. Check that it is running and that you are on its network, then try again.',
  offline: 'This device is offline. Connect it to a network, then try again.',
  fault: 'This page has a fault. Reload it and try again.',
  retry: 'Try again',
  tryIn: (seconds: number) => `Try again in ${seconds} s`,
  tryNow: 'You can try again now.',
  cancel: 'Cancel',
  close: 'Close',
  save: 'Save',
  copy: 'Copy',
  copied: 'Copied',
  more: 'Show more',
  loading: 'Loading…',
};
