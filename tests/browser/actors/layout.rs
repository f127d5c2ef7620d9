//! Layout: faults of a page that a person would see at once.

use super::Visitor;

/// Controls that something else covers, words broken within a label, and labels that do not fit.
///
/// A control that is scrolled out of its list or out of the window does not count.
const FAULTS: &str = r"
    const faults = [];
    const name = (one) => one.tagName.toLowerCase() + (one.dataset.part ? `[${one.dataset.part}]` : '') + [...one.classList].map((word) => '.' + word).join('') + ` “${(one.innerText || one.ariaLabel || '').slice(0, 30)}”`;
    const isShown = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !one.closest('.visually-hidden, [inert], .skip');
    const modal = document.querySelector('dialog[open]');
    const within = modal ?? document;
    /** Whether a point lies within the window and within every box that scrolls. */
    const isInView = (one, x, y) => {
        if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) return false;
        for (let box = one.parentElement; box; box = box.parentElement) {
            if (getComputedStyle(box).overflow === 'visible') continue;
            const { left, right, top, bottom } = box.getBoundingClientRect();
            if (x < left || x >= right || y < top || y >= bottom) return false;
        }
        return true;
    };
    for (const one of within.querySelectorAll('button, a[href], input, textarea, select, summary')) {
        if (!isShown(one)) continue;
        const { left, top, width, height } = one.getBoundingClientRect();
        if (width < 2 || height < 2) continue;
        const [x, y] = [left + width / 2, top + height / 2];
        if (!isInView(one, x, y)) continue;
        const hit = document.elementFromPoint(x, y);
        const isOwn = hit && (one.contains(hit) || hit.contains(one) || one.closest('label')?.contains(hit));
        // A message may lie over the conversation for a moment, never over the prompt box or the header.
        const isPassing = hit?.closest('.toast') && one.closest('.transcript');
        if (!isOwn && !isPassing) faults.push(`${name(one)} is covered by ${hit ? name(hit) : 'nothing'}`);
    }
    for (const one of within.querySelectorAll('button, .button, .badge, h1, h2, h3, summary, th, label > span, kbd, .row-status, .head-facts > *')) {
        if (!isShown(one)) continue;
        const style = getComputedStyle(one);
        const isCut = style.overflow !== 'visible' && style.textOverflow === 'ellipsis';
        if (!isCut && one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 && style.display !== 'inline') faults.push(`${name(one)} is wider than its box`);
        const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
        for (let text = walker.nextNode(); text; text = walker.nextNode()) {
            if (!isShown(text.parentElement) || text.parentElement.closest('code, pre, .mono, [data-part=title], .row-title, .tool-title')) continue;
            for (const { index, 0: word } of text.data.matchAll(/[^\s\-–—/·:.,@_]+/g)) {
                if (word.length > 18) continue;
                const range = new Range();
                range.setStart(text, index);
                range.setEnd(text, index + word.length);
                const tops = new Set([...range.getClientRects()].filter(({ width }) => width > 0).map(({ top }) => Math.round(top)));
                if (tops.size > 1) faults.push(`the word “${word}” is broken in ${name(one)}`);
            }
        }
    }
    return [...new Set(faults)];";

impl Visitor {
    /// What is covered, cut off or broken on the page as it is now.
    pub(crate) async fn finds_layout_faults(&self) -> Vec<String> {
        self.runs_script(FAULTS).await
    }

    /// Fails on any fault of the layout, and if the page is wider than the screen.
    pub(crate) async fn sees_sound_layout(&self, place: &str) {
        let (overhang, what) = self.finds_overhang().await;
        assert!(overhang <= 0, "{place}: {overhang} px too wide: {what:?}");
        let faults = self.finds_layout_faults().await;
        assert!(faults.is_empty(), "{place}: {faults:#?}");
    }
}
