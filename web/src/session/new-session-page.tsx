// The page on which a session begins: who shall work, and at what.
import { useEffect, useRef, useState } from 'preact/hooks';
import { Failure } from '@switchboard/client';
import { account, explain, noticeEnd, request } from '../../account';
import { Icon } from '../../parts/icon';
import { go } from '../../place';
import { text } from '../../text';
import { create } from '../open';
import { AgentChoice, readAgents, rememberAgent } from './agents';
import type { Agents } from './agents';
import { Box } from './box';
import { Writing } from './writing';

const words = text.composer;
/** What shows best what the page can do. */
const EXAMPLES = ['/markdown', '/tool', '/edit', '/plan', '/think', '/pick multi', '/stream 40 50'];

export function NewSession() {
  const [agents, setAgents] = useState<Agents>({ is: 'loading' });
  const [agent, setAgent] = useState<string>();
  const [writing, setWriting] = useState<Writing>();
  const chosen = useRef<string | undefined>(undefined);
  chosen.current = agent;
  const load = () => {
    setAgents({ is: 'loading' });
    const mine = account();
    readAgents(mine).then(
      (found) => {
        setAgents({ is: 'there', ...found });
        setAgent((already) => already ?? found.first);
      },
      (error: unknown) => {
        noticeEnd(mine, error);
        setAgents({ is: 'failed', why: explain(error) });
      },
    );
  };
  useEffect(load, []);
  useEffect(() => {
    const opened: Writing = new Writing('new', (): Promise<string> => sessionFor(opened, chosen.current));
    // The files of a draft are in the session that was made for them, which has its agent.
    if (opened.made.value && opened.files.list.value.length > 0) setAgent(opened.made.value.agent);
    setWriting(opened);
    return () => opened.close();
  }, []);
  return (
    <div class="new" data-part="new">
      <h1>{words.newTitle}</h1>
      <AgentChoice agents={agents} chosen={agent} isFixed={(writing?.files.list.value.length ?? 0) > 0} retry={load} choose={(name) => {
        rememberAgent(name);
        setAgent(name);
      }} />
      {writing && agent !== undefined && agents.is === 'there' && <Start writing={writing} agent={agent} abilities={agents.abilities[agent] ?? []} />}
    </div>
  );
}

function Start({ writing, agent, abilities }: { writing: Writing; agent: string; abilities: readonly string[] }) {
  const [isBusy, setBusy] = useState(false);
  const [isWaiting, setWaiting] = useState(false);
  const isUploading = writing.files.isUploading.value;
  const begin = async () => {
    const why = whyNot(writing);
    if (why !== undefined) return void (writing.error.value = why);
    setBusy(true);
    try {
      if (!(await isStillThere(writing))) return void (writing.error.value = words.filesGone);
      const id = await sessionFor(writing, agent);
      rememberAgent(agent);
      writing.handOver(id);
      go({ page: 'session', id });
    } catch (error) {
      writing.error.value = explain(error);
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => {
    if (!isWaiting || isUploading) return;
    setWaiting(false);
    void begin();
  }, [isWaiting, isUploading]);
  const onSend = () => {
    if (isBusy) return;
    if (isUploading) return setWaiting(!isWaiting);
    if (writing.text.value.trim() === '' && writing.files.list.value.length === 0) return document.getElementById('prompt')?.focus();
    void begin();
  };
  useEffect(() => {
    if (!matchMedia('(hover: none)').matches) document.getElementById('prompt')?.focus();
  }, []);
  return (
    <>
      <p class="small soft waiting-for-files" role="status">{isBusy ? words.starting : isWaiting ? words.waitingForFiles : ''}</p>
      <Box
        writing={writing}
        label={words.label}
        placeholder={words.placeholder(agent)}
        most={undefined}
        mostBytes={undefined}
        readsFiles={abilities.includes('attachments') || abilities.includes('images')}
        commands={() => []}
        onSend={onSend}
        right={
          <button type="button" class="button send-button" data-part="send" aria-label={isWaiting ? words.stopWaiting : words.send} title={words.send} aria-disabled={isBusy || writing.text.value.trim() === ''} onClick={onSend}>
            <Icon name={isWaiting ? 'close' : 'send'} />
          </button>
        }
      />
      {agent === 'demo' && <Examples writing={writing} />}
    </>
  );
}

function Examples({ writing }: { writing: Writing }) {
  return (
    <p class="examples" role="group" aria-label={words.examples}>
      <span class="soft small" aria-hidden="true">{words.examples}</span>
      {EXAMPLES.map((example) => (
        <button key={example} type="button" class="example mono" onClick={() => {
          writing.text.value = example;
          document.getElementById('prompt')?.focus();
        }}>{example}</button>
      ))}
    </p>
  );
}

function whyNot(writing: Writing): string | undefined {
  if (writing.text.value.trim() === '') return words.needsText;
  return writing.files.hasFailed.value ? words.failedFiles : undefined;
}

/** Whether the session that was made for files still exists. If not, the files have to be brought again. */
async function isStillThere(writing: Writing): Promise<boolean> {
  const made = writing.made.value;
  if (!made) return true;
  try {
    await request('GET', `/api/sessions/${made.id}`);
    return true;
  } catch (error) {
    if (!(error instanceof Failure) || error.status !== 404) throw error;
  }
  const hadFiles = writing.files.list.value.length > 0;
  making.delete(writing);
  writing.made.value = undefined;
  writing.files.clear();
  return !hadFiles;
}

const making = new WeakMap<Writing, { agent: string | undefined; id: Promise<string> }>();

/** The session that the box writes to; made when the first file or the prompt needs it, and once. */
function sessionFor(writing: Writing, agent: string | undefined): Promise<string> {
  const made = writing.made.value;
  if (made && made.agent === agent) return Promise.resolve(made.id);
  const known = making.get(writing);
  if (known && known.agent === agent) return known.id;
  const id = create(agent).then((id) => {
    writing.made.value = { id, agent: agent ?? '' };
    return id;
  });
  making.set(writing, { agent, id });
  id.catch(() => making.delete(writing));
  return id;
}
