// Messages: append, replace, complete and trim the messages of a view.
import type { HistoryMessage } from './generated/protocol.js';
import { truncateUtf8, utf8Length } from './utf8.js';
import type { Bounds, View } from './view.js';

type MessageFields = Pick<View, 'messages' | 'textBytes' | 'cut' | 'historyTruncated'>;

/** Searches from the end, where most updates happen. */
export function findMessage(view: MessageFields, id: string): HistoryMessage | undefined {
  for (let index = view.messages.length - 1; index >= 0; index -= 1) {
    if (view.messages[index]?.id === id) return view.messages[index];
  }
  return undefined;
}

/** The view with one more message. */
export function appendMessage<T extends MessageFields>(view: T, message: HistoryMessage): T {
  return { ...view, messages: [...view.messages, message], textBytes: view.textBytes + utf8Length(message.content) };
}

/** The view with one message replaced; `byteDelta` is the change of its length. */
export function replaceMessage<T extends MessageFields>(view: T, before: HistoryMessage, after: HistoryMessage, byteDelta = 0): T {
  const messages = view.messages.map((message) => (message === before ? after : message));
  return { ...view, messages, textBytes: view.textBytes + byteDelta };
}

/** The view with all messages of a run complete. */
export function completeMessages<T extends MessageFields>(view: T, taskId: string): T {
  const messages = view.messages.map((message) =>
    message.taskId === taskId && !message.isComplete ? { ...message, isComplete: true } : message,
  );
  return { ...view, messages };
}

/** Drops the oldest messages beyond the bounds; a single message that is too long is cut. */
export function trimMessages<T extends MessageFields>(view: T, bounds: Bounds): T {
  let { messages, textBytes, cut, historyTruncated } = view;
  while (messages.length > 1 && (messages.length > bounds.messages || textBytes > bounds.bytes)) {
    const [oldest, ...rest] = messages;
    if (!oldest) break;
    messages = rest;
    textBytes -= utf8Length(oldest.content);
    if (cut === oldest.id) cut = undefined;
    historyTruncated = true;
  }
  const single = messages[0];
  if (textBytes > bounds.bytes && single) {
    const content = truncateUtf8(single.content, bounds.bytes);
    messages = [{ ...single, content }];
    textBytes = utf8Length(content);
    cut = single.id;
    historyTruncated = true;
  }
  return messages === view.messages ? view : { ...view, messages, textBytes, cut, historyTruncated };
}
