// Options menu: model, modes and automatic approval.
import { useState } from 'preact/hooks';
import type { Protocol } from '@switchboard/client';
import { explain } from '../../auth';
import { Icon } from '../../components/icon';
import { CheckMark, Menu, MenuItem } from '../../components/menu';
import { text } from '../../text';
import type { OpenSession } from '../open-session';
import { useAgentQuery } from './agent-query';
import type { ComposerState } from './composer-state';
import { modelsOf } from './query-results';
import type { Model } from './query-results';

const strings = text.composer;

/** Plan or act, if the agent has modes. */
export function ModeSwitch({ session, composer }: { session: OpenSession; composer: ComposerState }) {
  if (!session.can('modes')) return null;
  const modes = [['act', strings.act, strings.actMeans], ['plan', strings.plan, strings.planMeans]] as const;
  return (
    <span class="mode-switch" role="group" aria-label={strings.mode} data-part="mode">
      {modes.map(([mode, name, description]) => (
        <button key={mode} type="button" title={description} aria-pressed={composer.mode.value === mode} data-mode={mode} onClick={() => (composer.mode.value = mode)}>{name}</button>
      ))}
    </span>
  );
}

export function OptionsMenu({ session }: { session: OpenSession }) {
  const { model } = session.view.value.settings;
  const button = (
    <>
      <Icon name="gear" />
      {model !== undefined && <span class="options-model">{model}</span>}
    </>
  );
  return (
    <Menu button={button} label={strings.options} buttonClass="icon-button options" part="options">
      <OptionsContent session={session} />
    </Menu>
  );
}

function OptionsContent({ session }: { session: OpenSession }) {
  const { settings } = session.view.value;
  const [error, setError] = useState('');
  const change = async (changes: Protocol.UpdateSettings['settings']) => {
    setError('');
    try {
      await session.send('UPDATE_SETTINGS', { settings: changes });
    } catch (error) {
      setError(explain(error));
    }
  };
  return (
    <>
      <label class="check switch">
        <input type="checkbox" role="switch" checked={settings.autoApprove} data-part="auto-approve" aria-describedby="approve-means" onChange={(event) => {
          const autoApprove = event.currentTarget.checked;
          // Shows the actual setting, not the requested one.
          event.currentTarget.checked = settings.autoApprove;
          void change({ autoApprove });
        }} />
        {strings.approve}
      </label>
      <p id="approve-means" class="small soft options-note">{strings.approveMeans}</p>
      <p class="error small" role="alert">{error}</p>
      <Models session={session} settings={settings} change={change} />
    </>
  );
}

function Models({ session, settings, change }: { session: OpenSession; settings: Protocol.AllSettings; change: (changes: Protocol.UpdateSettings['settings']) => void }) {
  const { state, reload } = useAgentQuery(session, 'models');
  if (state.is === 'loading') return <p class="small soft options-note" role="status">{text.common.loading}</p>;
  if (state.is === 'unavailable') return <p class="small soft options-note">{strings.modelsNone}</p>;
  if (state.is === 'failed') {
    return (
      <div class="options-note">
        <p class="error small" role="alert">{state.error}</p>
        <button type="button" class="button quiet small" onClick={reload}>{text.common.retry}</button>
      </div>
    );
  }
  const { models, modes, current } = modelsOf(state.result);
  // Some agents tell their model only when they are asked.
  const model = models.some(({ id }) => id === settings.model) ? settings.model : (current ?? settings.model);
  return (
    <>
      <ChoiceGroup title={strings.model} choices={models} chosen={model} choose={(id) => change({ model: id })} />
      <ChoiceGroup title={strings.ownMode} choices={modes} chosen={settings.mode} choose={(id) => change({ mode: id })} />
      {models.length === 0 && <p class="small soft options-note">{strings.modelsNone}</p>}
    </>
  );
}

function ChoiceGroup({ title, choices, chosen, choose }: { title: string; choices: readonly Model[]; chosen: string | undefined; choose: (id: string) => void }) {
  if (choices.length === 0) return null;
  return (
    <div role="group" aria-label={title}>
      <p class="menu-title small soft" aria-hidden="true">{title}</p>
      {choices.map(({ id, name }) => (
        <MenuItem key={id} isChosen={id === chosen} onChoose={() => choose(id)}>
          <CheckMark isOn={id === chosen} />
          {name}
        </MenuItem>
      ))}
    </div>
  );
}
