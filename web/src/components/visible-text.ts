// Visible text: makes invisible and misleading characters visible in text that people approve or run.

/**
 * Control characters and invisible ones: they reverse the reading direction, join or separate characters, or
 * hide text. Tab and line ends are not included.
 */
const INVISIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** Writes every invisible character as an escape such as `\u{202e}`. */
export function showInvisible(text: string): string {
  return text.replace(INVISIBLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** Keeps the joiners that emoji and some scripts need; for text written by people. */
export function showInvisibleExceptJoiners(text: string): string {
  return text.replace(INVISIBLE, (character) => (character === '\u200c' || character === '\u200d' ? character : showInvisible(character)));
}
