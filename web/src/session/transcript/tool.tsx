// One use of a tool, as a card that opens.
import { useMemo, useState } from 'preact/hooks';
import { Icon } from '../../parts/icon';
import type { IconName } from '../../parts/icon';
import { plainWords } from '../../parts/plainly';
import { text } from '../../text';
import { CodeText } from '../markdown/code';
import { CopyButton } from '../markdown/copy';
import { isDiff, PatchText } from '../markdown/patch';
import type { ToolEntry } from '../timeline';
import { Diff, tally } from './diff';
import { output } from './output';
import type { Output } from './output';

const ICONS: Readonly<Record<string, IconName>> = {
  read: 'file',
  edit: 'pencil',
  delete: 'trash',
  move: 'right',
  search: 'search',
  execute: 'terminal',
  think: 'bulb',
  fetch: 'globe',
};
const LOOKS: Readonly<Record<string, string>> = { running: 'accent', completed: 'good', failed: 'error', denied: 'warn' };
/** Changes with at most so many lines are shown without being asked for. */
const SMALL_CHANGE = 40;
/** Longer text is cut until somebody asks for all of it. */
const CUT_CHARS = 4_000;
const CUT_LINES = 40;
/** Longer changes are shown without colours. */
const DIFF_CHARS = 64 * 1024;

export function Tool({ entry: { tool } }: { entry: ToolEntry }) {
  const out = useMemo(() => output(tool.output), [tool.output]);
  const total = useMemo(() => tally(out.changes), [out]);
  const isSmall = out.changes.length > 0 && total.added + total.removed <= SMALL_CHANGE;
  const [chosen, choose] = useState<boolean>();
  const isOpen = chosen ?? isSmall;
  return (
    <details class="tool" open={isOpen} onToggle={(event) => event.currentTarget.open !== isOpen && choose(event.currentTarget.open)}>
      <summary>
        <Icon name={ICONS[tool.kind] ?? 'tool'} />
        <span class="tool-title">
          <span class="heard">{text.transcript.kinds[tool.kind] ?? text.transcript.tool} </span>
          {plainWords(tool.title || tool.name)}
        </span>
        {out.changes.length > 0 && (
          <span class="soft small" aria-label={text.transcript.changed(total.added, total.removed)}>
            {text.transcript.plusMinus(total.added, total.removed)}
          </span>
        )}
        <span class={`badge ${LOOKS[tool.status] ?? ''}`} data-status={tool.status}>
          {text.transcript.status[tool.status] ?? tool.status}
        </span>
      </summary>
      {isOpen && <Inside input={tool.input} out={out} />}
    </details>
  );
}

function Inside({ input, out }: { input: unknown; out: Output }) {
  const given = useMemo(() => output(input), [input]);
  const isEmpty = !given.words && !out.words && out.changes.length + out.spots.length + out.terminals.length === 0;
  return (
    <div class="tool-inside">
      {isEmpty && <p class="soft small">{text.transcript.nothing}</p>}
      {/* What an edit was given is what it changed. */}
      {given.words && out.changes.length === 0 && <Words name={text.transcript.input} words={given.words} />}
      {out.changes.map((change, place) => (
        <Diff key={`${place}:${change.path}`} change={change} />
      ))}
      {out.words && <Words name={text.transcript.output} words={out.words} />}
      {out.spots.length > 0 && out.changes.length === 0 && (
        <ul class="plain spots small mono" aria-label={text.transcript.places}>
          {out.spots.map(({ path, line }) => (
            <li key={`${path}:${line}`}>{text.transcript.place(path, line)}</li>
          ))}
        </ul>
      )}
      {out.terminals.map((id) => (
        <p key={id} class="soft small">
          {text.transcript.terminal(id)}
        </p>
      ))}
    </div>
  );
}

/** Text as it was written, cut if it is long. */
function Words({ name, words }: { name: string; words: string }) {
  const [isWhole, setWhole] = useState(false);
  const short = useMemo(() => cut(words), [words]);
  const shown = isWhole ? words : short;
  return (
    <figure class="code-block">
      <figcaption>
        <span>{name}</span>
        <CopyButton what={() => words} />
      </figcaption>
      <pre tabIndex={0} aria-label={name}>
        <code>{words.length <= DIFF_CHARS && isDiff(words) ? <PatchText patch={shown} /> : <CodeText code={shown} />}</code>
      </pre>
      {shown !== words && (
        <button type="button" class="quiet-button" onClick={() => setWhole(true)}>
          {text.transcript.showAllOf(words.split('\n').length)}
        </button>
      )}
    </figure>
  );
}

/** The beginning, if there is much. */
export function cut(words: string): string {
  let end = -1;
  for (let lines = 0; lines < CUT_LINES; lines += 1) {
    end = words.indexOf('\n', end + 1);
    if (end < 0) break;
  }
  const short = end < 0 ? words : words.slice(0, end);
  const all = short.length > CUT_CHARS ? short.slice(0, CUT_CHARS) : short;
  // A few lines more are not worth a button.
  return words.length - all.length < 200 ? words : all;
}
