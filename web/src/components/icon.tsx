// Icon: line drawings for buttons. Hidden from screen readers: the button needs a label.

const PATHS = {
  menu: 'M4 6h16M4 12h16M4 18h16',
  plus: 'M12 5v14M5 12h14',
  close: 'M6 6l12 12M18 6L6 18',
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M7 7h10v10H7z',
  clip: 'M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.3 3.3 0 0 1 4.7 4.7l-8.5 8.5a1.7 1.7 0 0 1-2.4-2.4L14.5 7',
  dots: 'M6 12a.8.8 0 1 0-1.6 0 .8.8 0 0 0 1.6 0M12.8 12a.8.8 0 1 0-1.6 0 .8.8 0 0 0 1.6 0M19.6 12a.8.8 0 1 0-1.6 0 .8.8 0 0 0 1.6 0',
  search: 'M11 18a7 7 0 1 1 0-14 7 7 0 0 1 0 14zM16 16l4 4',
  person: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 20c1.5-4 4.5-5 8-5s6.5 1 8 5',
  gear: 'M12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM12 3v3M12 18v3M3 12h3M18 12h3M5.6 5.6l2.1 2.1M16.3 16.3l2.1 2.1M5.6 18.4l2.1-2.1M16.3 7.7l2.1-2.1',
  copy: 'M9 9h10v10H9zM5 15V5h10',
  check: 'M5 13l4 4L19 7',
  down: 'M6 9l6 6 6-6',
  right: 'M9 6l6 6-6 6',
  branch: 'M7 4v16M7 14c0-4 10-2 10-8M17 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7 20a2 2 0 1 0 0-.01',
  bell: 'M6 17V11a6 6 0 1 1 12 0v6l1.5 2h-15zM10 21h4',
  file: 'M7 3h7l4 4v14H7zM14 3v4h4',
  tool: 'M14 7a4 4 0 0 1 5-4l-2.5 2.5 2 2L21 5a4 4 0 0 1-5 5L8 18a2 2 0 1 1-3-3z',
  warn: 'M12 4l9 16H3zM12 10v4M12 17h.01',
  out: 'M10 4H5v16h5M14 8l4 4-4 4M18 12H9',
  key: 'M8 15a4 4 0 1 1 0-8 4 4 0 0 1 0 8zM12 11h9M18 11v4',
  pencil: 'M4 20l1-4L16 5l3 3L8 19zM14 7l3 3',
  trash: 'M5 7h14M10 4h4M7 7l1 13h8l1-13M10 11v5M14 11v5',
  terminal: 'M4 5h16v14H4zM8 10l3 2-3 2M13 15h3',
  globe: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18',
  bulb: 'M9 17h6M10 20h4M8.5 14a5.5 5.5 0 1 1 7 0c-.6.6-.5 1.400-.5 3h-6c0-1.600.1-2.400-.5-3z',
  list: 'M9 6h11M9 12h11M9 18h11M4 6h.01M4 12h.01M4 18h.01',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** A button with only an icon. */
export function IconButton({ name, label, ...rest }: { name: IconName; label: string; class?: string; onClick?: (event: MouseEvent) => void; [more: `data-${string}`]: string | undefined } & Record<string, unknown>) {
  return (
    <button type="button" {...rest} class={`icon-button ${rest.class ?? ''}`} aria-label={label} title={label}>
      <Icon name={name} />
    </button>
  );
}
