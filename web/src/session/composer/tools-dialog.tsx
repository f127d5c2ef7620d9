// What the agent has at hand: MCP servers and skills.
import { useState } from 'preact/hooks';
import { Dialog } from '../../parts/dialog';
import { IconButton } from '../../parts/icon';
import { text } from '../../text';
import type { OpenSession } from '../open';
import { useAnswer } from './asking';
import { serversOf } from './inventory';
import type { Server, Skill } from './inventory';
import { Part } from './part';
import { Skills } from './skills';

const words = text.composer;

/** The button, and the panel that it opens. `onSkill`: somebody wants to use one. */
export function Tools({ session, onSkill }: { session: OpenSession; onSkill: (skill: Skill) => void }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <IconButton name="tool" label={words.tools} data-part="tools" onClick={() => setOpen(true)} />
      {isOpen && (
        <Dialog title={words.tools} isWide onClose={() => setOpen(false)}>
          <Skills
            session={session}
            onChoose={(skill) => {
              setOpen(false);
              onSkill(skill);
            }}
          />
          <Servers session={session} />
          <div class="dialog-buttons">
            <button type="button" class="button quiet" onClick={() => setOpen(false)}>{text.common.close}</button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function Servers({ session }: { session: OpenSession }) {
  const { answer, reload } = useAnswer(session, 'mcp', { scope: 'configured' });
  return (
    <Part title={words.mcp} part="mcp" answer={answer} reload={reload}>
      {(result) => {
        const servers = serversOf(result);
        if (servers.length === 0) return <p class="soft">{words.mcpNone}</p>;
        return <ul class="plain tool-list">{servers.map((server) => <ServerRow key={server.id} server={server} />)}</ul>;
      }}
    </Part>
  );
}

function ServerRow({ server }: { server: Server }) {
  const { id, state, about, tools, error } = server;
  const kind = error !== '' || /error|fail/.test(state) ? 'error' : /ready|connected/.test(state) ? 'good' : '';
  return (
    <li data-server={id}>
      <span class="tool-name">{id}</span>
      <span class={`badge ${kind}`}>{words.states[state] ?? (state || words.unknownState)}</span>
      <span class="soft small">{[...about, ...(tools === undefined ? [] : [words.mcpTools(tools)])].join(' · ')}</span>
      {error !== '' && <span class="tool-error small">{error}</span>}
    </li>
  );
}
