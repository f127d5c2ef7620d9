// Tools dialog: the agent's MCP servers and skills.
import { useState } from 'preact/hooks';
import { Dialog } from '../../components/dialog';
import { IconButton } from '../../components/icon';
import { text } from '../../text';
import type { OpenSession } from '../open-session';
import { useAgentQuery } from './agent-query';
import { serversOf } from './query-results';
import type { McpServer, Skill } from './query-results';
import { QuerySection } from './query-section';
import { Skills } from './skills';

const strings = text.composer;

/** `onSkill`: the user wants to use a skill. */
export function ToolsButton({ session, onSkill }: { session: OpenSession; onSkill: (skill: Skill) => void }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <IconButton name="tool" label={strings.tools} data-part="tools" onClick={() => setOpen(true)} />
      {isOpen && (
        <Dialog title={strings.tools} isWide onClose={() => setOpen(false)}>
          <Skills
            session={session}
            onChoose={(skill) => {
              setOpen(false);
              onSkill(skill);
            }}
          />
          <McpServers session={session} />
          <div class="dialog-buttons">
            <button type="button" class="button quiet" onClick={() => setOpen(false)}>{text.common.close}</button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function McpServers({ session }: { session: OpenSession }) {
  const { state, reload } = useAgentQuery(session, 'mcp', { scope: 'loaded' });
  return (
    <QuerySection title={strings.mcp} part="mcp" unavailable={strings.mcpUnavailable} query={state} reload={reload}>
      {(result) => {
        const servers = serversOf(result);
        if (servers.length === 0) return <p class="soft">{strings.mcpNone}</p>;
        return <ul class="plain tool-list">{servers.map((server) => <McpServerRow key={server.id} server={server} />)}</ul>;
      }}
    </QuerySection>
  );
}

function McpServerRow({ server }: { server: McpServer }) {
  const { id, state, details, tools, error } = server;
  const kind = error !== '' || /error|fail/.test(state) ? 'error' : /ready|connected/.test(state) ? 'good' : '';
  return (
    <li data-server={id}>
      <span class="tool-name">{id}</span>
      <span class={`badge ${kind}`}>{strings.states[state] ?? (state || strings.unknownState)}</span>
      <span class="soft small">{[...details, ...(tools === undefined ? [] : [strings.mcpTools(tools)])].join(' · ')}</span>
      {error !== '' && <span class="tool-error small">{error}</span>}
    </li>
  );
}
