// With which model the agent works, and what it may do without asking.
import { useState } from 'preact/hooks';
import type { Protocol } from '@switchboard/client';
import { explain } from '../../account';
import { Icon } from '../../parts/icon';
import { Menu, MenuItem } from '../../parts/menu';
import { text } from '../../text';
import type { OpenSession } from '../open';
import { useAnswer } from './asking';
import { modelsOf } from './inventory';
import type { Model } from './inventory';
import { Tick } from './queue';
import type { Writing } from './writing';

const words = text.composer;

/** Plan or act. Only where the agent knows the difference. */
export function ModeSwitch({ session, writing }: { session: OpenSession; writing: Writing }) {
  if (!session.can('modes')) return null;
  const modes = [['act', words.act, words.actMeans], ['plan', words.plan, words.planMeans]] as const;
  return (
    <span class="mode-switch" role="group" aria-label={words.mode} data-part="mode">
      {modes.map(([mode, name, means]) => (
        <button key={mode} type="button" title={means} aria-pressed={writing.mode.value === mode} data-mode={mode} onClick={() => (writing.mode.value = mode)}>{name}</button>
      ))}
    </span>
  );
}

export function Options({ session }: { session: OpenSession }) {
  const { model } = session.view.value.settings;
  const button = (
    <>
      <Icon name="gear" />
      {model !== 'default' && <span class="options-model">{model}</span>}
    </>
  );
  return (
    <Menu button={button} label={words.options} buttonClass="icon-button options" part="options">
      <Choices session={session} />
    </Menu>
  );
}

function Choices({ session }: { session: OpenSession }) {
  const { settings } = session.view.value;
  const [why, setWhy] = useState('');
  const change = async (wanted: Protocol.SettingsToChange) => {
    setWhy('');
    try {
      await session.send('UPDATE_SETTINGS', { settings: wanted });
    } catch (error) {
      setWhy(explain(error));
    }
  };
  return (
    <>
      <label class="check switch">
        <input type="checkbox" role="switch" checked={settings.autoApprove} data-part="auto-approve" aria-describedby="approve-means" onChange={(event) => {
          const wanted = event.currentTarget.checked;
          // It shows what is so, not what was wished.
          event.currentTarget.checked = settings.autoApprove;
          void change({ autoApprove: wanted });
        }} />
        {words.approve}
      </label>
      <p id="approve-means" class="small soft options-words">{words.approveMeans}</p>
      <p class="error small" role="alert">{why}</p>
      <Models session={session} settings={settings} change={change} />
    </>
  );
}

function Models({ session, settings, change }: { session: OpenSession; settings: Protocol.AllSettings; change: (wanted: Protocol.SettingsToChange) => void }) {
  const { answer, reload } = useAnswer(session, 'models');
  if (answer.is === 'loading') return <p class="small soft options-words" role="status">{text.common.loading}</p>;
  if (answer.is === 'unavailable') return <p class="small soft options-words">{words.modelsNone}</p>;
  if (answer.is === 'failed') {
    return (
      <div class="options-words">
        <p class="error small" role="alert">{answer.why}</p>
        <button type="button" class="button quiet small" onClick={reload}>{text.common.retry}</button>
      </div>
    );
  }
  const { models, modes, current } = modelsOf(answer.result);
  // Until somebody chooses, the setting says `default` and the agent knows which that is.
  const model = models.some(({ id }) => id === settings.model) ? settings.model : (current ?? settings.model);
  return (
    <>
      <Group title={words.model} among={models} chosen={model} choose={(id) => change({ model: id })} />
      <Group title={words.ownMode} among={modes} chosen={settings.mode} choose={(id) => change({ mode: id })} />
      {models.length === 0 && <p class="small soft options-words">{words.modelsNone}</p>}
    </>
  );
}

function Group({ title, among, chosen, choose }: { title: string; among: readonly Model[]; chosen: string | undefined; choose: (id: string) => void }) {
  if (among.length === 0) return null;
  return (
    <div role="group" aria-label={title}>
      <p class="menu-title small soft" aria-hidden="true">{title}</p>
      {among.map(({ id, name }) => (
        <MenuItem key={id} isChosen={id === chosen} onChoose={() => choose(id)}>
          <Tick isOn={id === chosen} />
          {name}
        </MenuItem>
      ))}
    </div>
  );
}
