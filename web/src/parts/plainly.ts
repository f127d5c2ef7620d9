// Text that somebody decides by, or runs, shown so that it cannot look like something else.

/**
 * Control characters, and those that nobody sees: they turn the order of letters around, join or part them,
 * or hide a message. Tab and the ends of lines are as they seem.
 */
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** With all that cannot be seen written out: `\u{202e}`. */
export function plainly(text: string): string {
  return text.replace(UNSEEN, (letter) => `\\u{${letter.codePointAt(0)?.toString(16)}}`);
}

/** The same for what people write: the joiners of emoji and of some scripts are let through. */
export function plainWords(text: string): string {
  return text.replace(UNSEEN, (letter) => (letter === '\u200c' || letter === '\u200d' ? letter : plainly(letter)));
}
