// Usage text: what an account uses of its quotas.
export const usage = {
  title: 'Usage',
  words: 'What your account stores and sends, and the most that it may. Delete sessions to make room.',
  of: (used: string, max: string) => `${used} of ${max}`,
  usedUp: 'Used up',
  reload: 'Read again',
  quotas: {
    sessions: 'Sessions',
    journalBytes: 'Conversations',
    attachmentBytes: 'Uploaded files',
    messagesPerMinute: 'Messages in the last minute',
  },
  number: (value: number) => value.toLocaleString(),
  bytes: (value: number) => {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    const step = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(value) / 10));
    return `${(value / 1024 ** step).toLocaleString(undefined, { maximumFractionDigits: 1 })} ${units[step]}`;
  },
};
