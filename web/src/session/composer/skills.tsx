// The skills of the agent, to search and to choose from.
import { useState } from 'preact/hooks';
import { text } from '../../text';
import type { OpenSession } from '../open';
import { useAnswer } from './asking';
import { commandsOfSession } from './completion';
import { skillsOf } from './inventory';
import type { Skill } from './inventory';
import { Part } from './part';

const words = text.composer;

export function Skills({ session, onChoose }: { session: OpenSession; onChoose: (skill: Skill) => void }) {
  const { answer, reload } = useAnswer(session, 'skills');
  return (
    <Part title={words.skills} part="skills" answer={answer} reload={reload}>
      {(result) => <Picker told={skillsOf(result)} onChoose={onChoose} />}
    </Part>
  );
}

function Picker({ told, onChoose }: { told: ReturnType<typeof skillsOf>; onChoose: (skill: Skill) => void }) {
  const [search, setSearch] = useState('');
  const [scope, setScope] = useState('');
  const scopes = [...new Set(told.skills.map((skill) => skill.scope).filter((one) => one !== ''))];
  const wanted = search.trim().toLowerCase();
  const shown = told.skills.filter((skill) => (scope === '' || skill.scope === scope) && `${skill.name} ${skill.description}`.toLowerCase().includes(wanted));
  return (
    <>
      {told.errors.map((error) => <p class="error small" key={error}>{error}</p>)}
      {told.skills.length === 0 ? (
        <p class="soft">{words.skillsNone}</p>
      ) : (
        <div class="skill-search">
          <input class="input" type="search" aria-label={words.skillsSearch} placeholder={words.skillsSearch} value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
          {scopes.length > 0 && (
            <select class="input" aria-label={words.scope} value={scope} onChange={(event) => setScope(event.currentTarget.value)}>
              <option value="">{words.scopeAll}</option>
              {scopes.map((one) => <option key={one} value={one}>{words.scopes[one] ?? one}</option>)}
            </select>
          )}
        </div>
      )}
      {told.skills.length > 0 && shown.length === 0 && <p class="soft" role="status">{words.skillsNoneFound}</p>}
      <ul class="plain tool-list">
        {shown.map((skill) => (
          <li key={skill.id} data-skill={skill.id}>
            <span class="tool-name">{skill.name}</span>
            {skill.scope !== '' && <span class="badge">{words.scopes[skill.scope] ?? skill.scope}</span>}
            <span class="soft small tool-words">{skill.description}</span>
            <button type="button" class="button quiet small" aria-label={words.useSkill(skill.name)} onClick={() => onChoose(skill)}>{words.choose}</button>
          </li>
        ))}
      </ul>
      {told.isTruncated && <p class="soft small">{words.truncated}</p>}
    </>
  );
}

/** How somebody would name a skill in a prompt: as a command if the agent has one for it. */
export function mention(session: OpenSession, skill: Skill): string {
  const names = [skill.id, skill.name].map((name) => name.toLowerCase());
  const command = commandsOfSession(session).find(({ word }) => names.includes(word.slice(1).toLowerCase().replace(/^skill:/, '')));
  return command ? `${command.word} ` : words.skillMention(skill.name);
}
