// HTML entities: decodes `&name;` and `&#number;`.

const NAMED_ENTITIES: Readonly<Record<string, string>> = {
  amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', copy: '©', reg: '®', trade: '™', hellip: '…', mdash: '—', ndash: '–',
  lsquo: '‘', rsquo: '’', ldquo: '“', rdquo: '”', laquo: '«', raquo: '»', bull: '•', middot: '·', times: '×', divide: '÷', plusmn: '±',
  deg: '°', para: '¶', sect: '§', euro: '€', pound: '£', yen: '¥', cent: '¢', larr: '←', uarr: '↑', rarr: '→', darr: '↓', harr: '↔',
  rArr: '⇒', lArr: '⇐', le: '≤', ge: '≥', ne: '≠', infin: '∞', check: '✓', shy: '\u00ad', ensp: '\u2002', emsp: '\u2003', thinsp: '\u2009',
};

/** Unknown names stay as they are. */
export function decodeEntities(text: string): string {
  if (!text.includes('&')) return text;
  return text.replace(/&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([A-Za-z]+));/g, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return NAMED_ENTITIES[name] ?? whole;
    const code = decimal === undefined ? parseInt(hex ?? '', 16) : parseInt(decimal, 10);
    const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return isCharacter ? String.fromCodePoint(code) : '\ufffd';
  });
}
