// Text highlight: marks words on the page without changing its elements.
//
// Uses the browser's own highlights (CSS Custom Highlight API); where there are none, nothing is marked.

/** Further places are not marked. */
const MAX_RANGES = 2_000;

/** The places of words in an element, in any case, in the order of the page. */
export function findWords(root: Node, words: readonly string[]): Range[] {
  const wanted = words.map((word) => word.toLowerCase()).filter((word) => word !== '');
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < MAX_RANGES; node = walker.nextNode()) {
    const content = (node as Text).data.toLowerCase();
    // Lower case may have another length, and then other positions.
    if (content.length !== (node as Text).data.length) continue;
    for (const word of wanted) {
      for (let at = content.indexOf(word); at >= 0 && ranges.length < MAX_RANGES; at = content.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        ranges.push(range);
      }
    }
  }
  return ranges;
}

/** Marks ranges under a name that the stylesheet knows; none removes the mark. */
export function highlight(name: 'search-hit' | 'find' | 'find-current', ranges: readonly Range[]): void {
  if (!('highlights' in CSS)) return;
  if (ranges.length === 0) CSS.highlights.delete(name);
  else CSS.highlights.set(name, new Highlight(...ranges));
}
