// The messages of a view: appended to, settled, and kept within bounds.
import type { HistoryMessage } from './generated/protocol.js';
import { utf8Bytes, utf8Cut } from './view.js';
import type { Bounds, View } from './view.js';

type Talk = Pick<View, 'messages' | 'textBytes' | 'cut' | 'historyTruncated'>;

/** A kept message; searched from the end, where the talk is. */
export function find(talk: Talk, id: string): HistoryMessage | undefined {
  for (let place = talk.messages.length - 1; place >= 0; place -= 1) {
    if (talk.messages[place]?.id === id) return talk.messages[place];
  }
  return undefined;
}

/** With one more message. */
export function push<T extends Talk>(talk: T, message: HistoryMessage): T {
  return { ...talk, messages: [...talk.messages, message], textBytes: talk.textBytes + utf8Bytes(message.content) };
}

/** With another message in the place of one; `grown`: by so many bytes. */
export function replace<T extends Talk>(talk: T, before: HistoryMessage, after: HistoryMessage, grown = 0): T {
  const messages = talk.messages.map((message) => (message === before ? after : message));
  return { ...talk, messages, textBytes: talk.textBytes + grown };
}

/** Everything that a run said is complete. */
export function complete<T extends Talk>(talk: T, taskId: string): T {
  const messages = talk.messages.map((message) =>
    message.taskId === taskId && !message.isComplete ? { ...message, isComplete: true } : message,
  );
  return { ...talk, messages };
}

/** Within bounds: the oldest fall out, a single one that is too long is cut. */
export function trim<T extends Talk>(talk: T, bounds: Bounds): T {
  let { messages, textBytes, cut, historyTruncated } = talk;
  while (messages.length > 1 && (messages.length > bounds.messages || textBytes > bounds.bytes)) {
    const [oldest, ...rest] = messages;
    if (!oldest) break;
    messages = rest;
    textBytes -= utf8Bytes(oldest.content);
    if (cut === oldest.id) cut = undefined;
    historyTruncated = true;
  }
  const only = messages[0];
  if (textBytes > bounds.bytes && only) {
    const content = utf8Cut(only.content, bounds.bytes);
    messages = [{ ...only, content }];
    textBytes = utf8Bytes(content);
    cut = only.id;
    historyTruncated = true;
  }
  return messages === talk.messages ? talk : { ...talk, messages, textBytes, cut, historyTruncated };
}
