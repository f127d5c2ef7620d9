// Menu: a button that opens a list of actions.
import type { ComponentChildren, TargetedKeyboardEvent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Icon } from './icon';

const GAP_PX = 4;

/**
 * `button`: the button's content; `label`: its tooltip and name for screen readers. Children are `MenuItem`s
 * or anything else.
 */
export function Menu({ button, label, buttonClass = 'icon-button', part, children }: { button: ComponentChildren; label: string; buttonClass?: string; part?: string; children: ComponentChildren | ((close: () => void) => ComponentChildren) }) {
  const [isOpen, setOpen] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const close = () => {
    setOpen(false);
    opener.current?.focus();
  };

  useEffect(() => {
    const menu = list.current;
    if (!isOpen || !menu || !opener.current) return;
    menu.showPopover();
    positionMenu(menu, opener.current);
    menu.querySelector<HTMLElement>('input, [role^=menuitem]')?.focus();
    // Closed by the browser: a click elsewhere, or Escape.
    const onToggle = (event: Event) => {
      if ((event as ToggleEvent).newState === 'closed') setOpen(false);
    };
    menu.addEventListener('toggle', onToggle);
    // The content may load after the menu has opened.
    const resizeObserver = new ResizeObserver(() => opener.current && positionMenu(menu, opener.current));
    resizeObserver.observe(menu);
    return () => {
      resizeObserver.disconnect();
      menu.removeEventListener('toggle', onToggle);
    };
  }, [isOpen]);

  const onKeyDown = (event: TargetedKeyboardEvent<HTMLDivElement>) => {
    if (event.key === 'Escape') {
      // Handled: Escape must not also close what is around the menu.
      event.preventDefault();
      return close();
    }
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : undefined;
    if (step === undefined) return;
    event.preventDefault();
    const items = [...event.currentTarget.querySelectorAll<HTMLElement>('[role^=menuitem], input')];
    const current = items.indexOf(document.activeElement as HTMLElement);
    items[(current + step + items.length) % items.length]?.focus();
  };

  return (
    <>
      <button ref={opener} type="button" class={buttonClass} aria-label={label} title={label} aria-haspopup="menu" aria-expanded={isOpen} data-part={part} onClick={() => (isOpen ? close() : setOpen(true))}>
        {button}
      </button>
      {isOpen && (
        <div ref={list} class="menu" role="menu" aria-label={label} popover="auto" onKeyDown={onKeyDown}>
          {typeof children === 'function' ? children(close) : children}
        </div>
      )}
    </>
  );
}

/** One action. */
export function MenuItem({ onChoose, isChosen, isDangerous = false, part, children }: { onChoose: () => void; isChosen?: boolean; isDangerous?: boolean; part?: string; children: ComponentChildren }) {
  const role = isChosen === undefined ? 'menuitem' : 'menuitemradio';
  return (
    <button type="button" role={role} aria-checked={isChosen} class={`menu-item ${isDangerous ? 'danger' : ''}`} data-part={part} onClick={onChoose}>
      {children}
    </button>
  );
}

/** The mark of a chosen item. */
export function CheckMark({ isOn }: { isOn: boolean }) {
  return <span class={`tick ${isOn ? '' : 'off'}`}><Icon name="check" /></span>;
}

/** Below the button, or above it if there is no space; never outside of the window. */
function positionMenu(menu: HTMLElement, opener: HTMLElement): void {
  const from = opener.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const isBelow = from.bottom + GAP_PX + height <= innerHeight || from.top < height;
  const top = isBelow ? Math.min(from.bottom + GAP_PX, innerHeight - height - GAP_PX) : from.top - GAP_PX - height;
  const left = from.left + width + GAP_PX <= innerWidth ? from.left : from.right - width;
  menu.style.top = `${Math.max(GAP_PX, top)}px`;
  menu.style.left = `${Math.max(GAP_PX, left)}px`;
}
