// Fake journal: events as a gateway would write them, also at random.
import type { Protocol, SessionEvent } from '@switchboard/client';
import { SeededRandom } from './seeded-random';

export class FakeJournal {
  readonly events: SessionEvent[] = [];
  #offset = 0;

  add<T extends Protocol.EventType>(type: T, payload: Protocol.GatewayPayloads[T], width = 1): this {
    this.#offset += width;
    const timestamp = new Date(1_700_000_000_000 + this.#offset * 1000).toISOString();
    this.events.push({ type, payload, timestamp, offset: this.#offset } as unknown as SessionEvent);
    return this;
  }

  start(taskId: string, text = 'do it', more: Partial<Protocol.TaskStatus> = {}): this {
    return this.add('TASK_STATUS_UPDATE', { taskId, status: 'starting', userMessageId: `u-${taskId}`, prompt: { text, mode: 'act', by: 'mia' }, ...more });
  }

  end(taskId: string, status: 'completed' | 'cancelled' | 'error' = 'completed'): this {
    const error = { code: 'TASK_FAILED' as const, message: 'It broke.' };
    return this.add('TASK_STATUS_UPDATE', { taskId, status, ...(status === 'error' ? { error } : {}) });
  }

  chunk(taskId: string, messageId: string, content: string, more: Partial<Protocol.Chunk> = {}, width = 1): this {
    const first = width > 1 ? { fromOffset: this.#offset + 1 } : {};
    return this.add('TASK_OUTPUT_CHUNK', { taskId, messageId, content, channel: 'text', chunkIndex: 0, isComplete: false, ...first, ...more }, width);
  }

  tool(taskId: string, toolCallId: string, status: Protocol.ToolState['status'], more: Partial<Protocol.ToolState> = {}): this {
    return this.add('TOOL_UPDATE', { taskId, toolCallId, status, kind: 'edit', name: 'edit', title: `Edit ${toolCallId}`, ...more });
  }

  ask(taskId: string, questionId: string): this {
    const fixed = { kind: 'confirm' as const, level: 'INFO' as const, title: 'Sure?', message: '', options: [] };
    return this.add('QUESTION', { taskId, questionId, ...fixed, allowReason: false, allowRemember: false, multi: false, multiline: false, secret: false });
  }

  resolve(taskId: string, questionId: string): this {
    return this.add('QUESTION_RESOLVED', { taskId, questionId, by: 'mia', outcome: 'answered', answer: { ok: true } });
  }
}

/** A random journal in which everything can happen. */
export function randomJournal(seed: number, runs: number): SessionEvent[] {
  const random = new SeededRandom(seed);
  const journal = new FakeJournal();
  for (let run = 0; run < runs; run += 1) appendRandomRun(journal, random, `t${run}`);
  return journal.events;
}

function appendRandomRun(journal: FakeJournal, random: SeededRandom, task: string): void {
  const merged = random.chance(0.2) ? [`${task}-merged`] : undefined;
  journal.start(task, `ask ${task}`, { ...(merged ? { mergedTaskIds: merged } : {}), ...(random.chance(0.1) ? { userMessageId: undefined } : {}) });
  const open = new Set<string>();
  const steps = random.below(14);
  for (let step = 0; step < steps; step += 1) appendRandomStep(journal, random, task, open);
  for (const question of open) if (random.chance(0.7)) journal.resolve(task, question);
  // The gateway crashed: the next run follows without an end.
  if (random.chance(0.08)) return;
  const outcome = random.pick(['completed', 'completed', 'cancelled', 'error'] as const);
  journal.end(task, outcome);
  for (const also of merged ?? []) journal.end(also, outcome);
}

function appendRandomStep(journal: FakeJournal, random: SeededRandom, task: string, open: Set<string>): void {
  const message = `${task}-m${random.below(3)}`;
  const tool = `call${random.below(2)}`;
  const question = `${task}-q${random.below(3)}`;
  switch (random.below(16)) {
    case 0:
    case 1:
    case 2:
      return void journal.chunk(task, message, `w${random.below(100)} `, {}, random.chance(0.2) ? 3 : 1);
    case 3:
    case 4:
      return void journal.chunk(task, message, `h${random.below(100)} `, { channel: 'thought' });
    case 5:
      return void journal.chunk(task, message, random.chance(0.5) ? '' : 'end', { isComplete: true });
    case 6:
      return void journal.chunk(task, message, '', { isComplete: true, withdrawn: true });
    case 7:
      return void journal.tool(task, tool, 'running', { input: { path: `p${random.below(9)}` } });
    case 8:
      return void journal.tool(task, tool, 'completed', random.chance(0.5) ? { output: 'done' } : {});
    case 9:
      open.add(question);
      return void journal.ask(task, question);
    case 10:
      if (open.delete(question)) journal.resolve(task, question);
      return;
    case 11:
      return void journal.add('MESSAGE', { id: message, role: random.pick(['assistant', 'system'] as const), content: 'All of it.', format: 'markdown', taskId: task });
    case 12:
      journal.add('MESSAGE', { id: `${task}-s${random.below(1000)}`, role: 'user', content: 'and this', format: 'text', taskId: task });
      return void journal.add('MESSAGE', { id: `g${random.below(1000)}`, role: 'user', content: 'try that', format: 'text', metadata: { suggestion: true, by: 'tom' } });
    case 13:
      journal.add('AGENT_NOTICE', { level: 'warn', text: 'Careful.' });
      return void journal.end(`${task}-withdrawn${random.below(1000)}`, 'cancelled');
    case 14:
      return void journal.add('PLAN_UPDATE', { taskId: task, steps: [{ title: `step ${random.below(9)}`, status: 'running' }] });
    default:
      journal.add('AGENT_STATE', { state: 'thinking' });
      return void journal.add('TASK_STATUS_UPDATE', { taskId: task, status: 'running' });
  }
}
