// New session page: chooses an agent and sends the first prompt.
import { useEffect, useRef, useState } from 'preact/hooks';
import { Failure } from '@switchboard/client';
import { account, explain, request, signOutIfEnded } from '../auth';
import { Icon } from '../components/icon';
import { navigate } from '../route';
import { text } from '../text';
import { AgentChoice, readAgents, rememberAgent } from './composer/agent-choice';
import type { Agents } from './composer/agent-choice';
import { ComposerState } from './composer/composer-state';
import { PromptBox } from './composer/prompt-box';
import { createSession } from './open-session';

const strings = text.composer;
/** Prompts that show what the page can do. */
const EXAMPLES = ['/markdown', '/tool', '/edit', '/plan', '/think', '/pick multi', '/stream 40 50'];

export function NewSessionPage() {
  const [agents, setAgents] = useState<Agents>({ is: 'loading' });
  const [agent, setAgent] = useState<string>();
  const [composer, setComposer] = useState<ComposerState>();
  const chosen = useRef<string | undefined>(undefined);
  chosen.current = agent;
  const load = () => {
    setAgents({ is: 'loading' });
    const current = account();
    readAgents(current).then(
      (found) => {
        setAgents({ is: 'there', ...found });
        setAgent((already) => already ?? found.first);
      },
      (error: unknown) => {
        signOutIfEnded(current, error);
        setAgents({ is: 'failed', error: explain(error) });
      },
    );
  };
  useEffect(load, []);
  useEffect(() => {
    const opened: ComposerState = new ComposerState('new', (): Promise<string> => ensureSession(opened, chosen.current));
    // The files of a draft belong to the session created for them, which has its agent.
    if (opened.createdSession.value && opened.files.list.value.length > 0) setAgent(opened.createdSession.value.agent);
    setComposer(opened);
    return () => opened.close();
  }, []);
  return (
    <div class="new" data-part="new">
      <h1>{strings.newTitle}</h1>
      <AgentChoice agents={agents} chosen={agent} isFixed={(composer?.files.list.value.length ?? 0) > 0} retry={load} choose={(name) => {
        rememberAgent(name);
        setAgent(name);
      }} />
      {composer && agent !== undefined && agents.is === 'there' && <NewSessionForm composer={composer} agent={agent} capabilities={agents.capabilities[agent] ?? []} />}
    </div>
  );
}

function NewSessionForm({ composer, agent, capabilities }: { composer: ComposerState; agent: string; capabilities: readonly string[] }) {
  const [isBusy, setBusy] = useState(false);
  const [isWaiting, setWaiting] = useState(false);
  const isUploading = composer.files.isUploading.value;
  const startSession = async () => {
    const refusal = refusalOf(composer);
    if (refusal !== undefined) return void (composer.error.value = refusal);
    setBusy(true);
    try {
      if (!(await doesSessionExist(composer))) return void (composer.error.value = strings.filesGone);
      const id = await ensureSession(composer, agent);
      rememberAgent(agent);
      composer.moveToSession(id);
      navigate({ page: 'session', id });
    } catch (error) {
      composer.error.value = explain(error);
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => {
    if (!isWaiting || isUploading) return;
    setWaiting(false);
    void startSession();
  }, [isWaiting, isUploading]);
  const onSend = () => {
    if (isBusy) return;
    if (isUploading) return setWaiting(!isWaiting);
    if (composer.text.value.trim() === '' && composer.files.list.value.length === 0) return document.getElementById('prompt')?.focus();
    void startSession();
  };
  useEffect(() => {
    if (!matchMedia('(hover: none)').matches) document.getElementById('prompt')?.focus();
  }, []);
  return (
    <>
      <p class="small soft waiting-for-files" role="status">{isBusy ? strings.starting : isWaiting ? strings.waitingForFiles : ''}</p>
      <PromptBox
        composer={composer}
        label={strings.label}
        placeholder={strings.placeholder(agent)}
        maxChars={undefined}
        maxFileBytes={undefined}
        readsFiles={capabilities.includes('attachments') || capabilities.includes('images')}
        commands={() => []}
        onSend={onSend}
        right={
          <button type="button" class="button send-button" data-part="send" aria-label={isWaiting ? strings.stopWaiting : strings.send} title={strings.send} aria-disabled={isBusy || composer.text.value.trim() === ''} onClick={onSend}>
            <Icon name={isWaiting ? 'close' : 'send'} />
          </button>
        }
      />
      {agent === 'demo' && <Examples composer={composer} />}
    </>
  );
}

function Examples({ composer }: { composer: ComposerState }) {
  return (
    <p class="examples" role="group" aria-label={strings.examples}>
      <span class="soft small" aria-hidden="true">{strings.examples}</span>
      {EXAMPLES.map((example) => (
        <button key={example} type="button" class="example mono" onClick={() => {
          composer.text.value = example;
          document.getElementById('prompt')?.focus();
        }}>{example}</button>
      ))}
    </p>
  );
}

function refusalOf(composer: ComposerState): string | undefined {
  if (composer.text.value.trim() === '') return strings.needsText;
  return composer.files.hasFailed.value ? strings.failedFiles : undefined;
}

/** Whether the session created for the files still exists. If not, they must be uploaded again. */
async function doesSessionExist(composer: ComposerState): Promise<boolean> {
  const created = composer.createdSession.value;
  if (!created) return true;
  try {
    await request('GET', `/api/sessions/${created.id}`);
    return true;
  } catch (error) {
    if (!(error instanceof Failure) || error.status !== 404) throw error;
  }
  const hadFiles = composer.files.list.value.length > 0;
  creations.delete(composer);
  composer.createdSession.value = undefined;
  composer.files.clear();
  return !hadFiles;
}

const creations = new WeakMap<ComposerState, { agent: string | undefined; id: Promise<string> }>();

/** The session of this composer; created once, when the first file or the prompt needs it. */
function ensureSession(composer: ComposerState, agent: string | undefined): Promise<string> {
  const existing = composer.createdSession.value;
  if (existing && existing.agent === agent) return Promise.resolve(existing.id);
  const creation = creations.get(composer);
  if (creation && creation.agent === agent) return creation.id;
  const id = createSession(agent).then((id) => {
    composer.createdSession.value = { id, agent: agent ?? '' };
    return id;
  });
  creations.set(composer, { agent, id });
  id.catch(() => creations.delete(composer));
  return id;
}
