// Skills: searches and chooses the agent's skills.
import { useState } from 'preact/hooks';
import { text } from '../../text';
import type { OpenSession } from '../open-session';
import { commandsOfSession } from './agent-commands';
import { useAgentQuery } from './agent-query';
import { skillsOf } from './query-results';
import type { Skill } from './query-results';
import { QuerySection } from './query-section';

const strings = text.composer;

export function Skills({ session, onChoose }: { session: OpenSession; onChoose: (skill: Skill) => void }) {
  const { state, reload } = useAgentQuery(session, 'skills');
  return (
    <QuerySection title={strings.skills} part="skills" unavailable={strings.skillsUnavailable} query={state} reload={reload}>
      {(result) => <SkillPicker result={skillsOf(result)} onChoose={onChoose} />}
    </QuerySection>
  );
}

function SkillPicker({ result, onChoose }: { result: ReturnType<typeof skillsOf>; onChoose: (skill: Skill) => void }) {
  const [search, setSearch] = useState('');
  const [scope, setScope] = useState('');
  const scopes = [...new Set(result.skills.map((skill) => skill.scope).filter((one) => one !== ''))];
  const query = search.trim().toLowerCase();
  const shown = result.skills.filter((skill) => (scope === '' || skill.scope === scope) && `${skill.name} ${skill.description}`.toLowerCase().includes(query));
  return (
    <>
      {result.errors.map((error) => <p class="error small" key={error}>{error}</p>)}
      {result.skills.length === 0 ? (
        <p class="soft">{strings.skillsNone}</p>
      ) : (
        <div class="skill-search">
          <input class="input" type="search" aria-label={strings.skillsSearch} placeholder={strings.skillsSearch} value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
          {scopes.length > 0 && (
            <select class="input" aria-label={strings.scope} value={scope} onChange={(event) => setScope(event.currentTarget.value)}>
              <option value="">{strings.scopeAll}</option>
              {scopes.map((one) => <option key={one} value={one}>{strings.scopes[one] ?? one}</option>)}
            </select>
          )}
        </div>
      )}
      {result.skills.length > 0 && shown.length === 0 && <p class="soft" role="status">{strings.skillsNoneFound}</p>}
      <ul class="plain tool-list">
        {shown.map((skill) => (
          <li key={skill.id} data-skill={skill.id}>
            <span class="tool-name">{skill.name}</span>
            {skill.scope !== '' && <span class="badge">{strings.scopes[skill.scope] ?? skill.scope}</span>}
            <span class="soft small tool-description">{skill.description}</span>
            <button type="button" class="button quiet small" aria-label={strings.useSkill(skill.name)} onClick={() => onChoose(skill)}>{strings.choose}</button>
          </li>
        ))}
      </ul>
      {result.isTruncated && <p class="soft small">{strings.truncated}</p>}
    </>
  );
}

/** How to refer to a skill in a prompt: as a command if the agent has one for it. */
export function mentionOf(session: OpenSession, skill: Skill): string {
  const names = [skill.id, skill.name].map((name) => name.toLowerCase());
  const command = commandsOfSession(session).find(({ name }) => names.includes(name.slice(1).toLowerCase().replace(/^skill:/, '')));
  return command ? `${command.name} ` : strings.skillMention(skill.name);
}
