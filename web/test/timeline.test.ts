// Timeline: folding and joining journals.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SessionEvent } from '@switchboard/client';
import { branchPoint, emptyTimeline, foldAll, join, timelineOfState } from '../src/session/timeline';
import type { Entry, Timeline } from '../src/session/timeline';
import { FakeJournal, randomJournal } from './fake-journal';
import { SeededRandom } from './seeded-random';

const read = (events: readonly SessionEvent[]): Timeline => foldAll(emptyTimeline(), events);
const kinds = ({ entries }: Timeline): string[] => entries.map(({ kind }) => kind);
const entry = <K extends Entry['kind']>({ entries }: Timeline, kind: K) =>
  entries.find((one) => one.kind === kind) as Extract<Entry, { kind: K }>;

test('the entries of a run are in the order of its events', () => {
  const journal = new FakeJournal().start('t').chunk('t', 'm', 'hm', { channel: 'thought' }).chunk('t', 'm', 'Hel').chunk('t', 'm', 'lo', { isComplete: true });
  const timeline = read(journal.tool('t', 'c', 'running').chunk('t', 'n', 'Done.').end('t').events);
  assert.deepEqual(kinds(timeline), ['prompt', 'thought', 'answer', 'tool', 'answer']);
  assert.equal(entry(timeline, 'answer').text, 'Hello');
  assert.equal(entry(timeline, 'prompt').by, 'mia');
  assert.ok(timeline.entries.every((one) => !('isComplete' in one) || one.isComplete));
});

test('a tool update without input keeps the input', () => {
  const journal = new FakeJournal().start('t').tool('t', 'c', 'running', { input: { path: 'a' } }).tool('t', 'c', 'completed', { output: 'ok' });
  const { tool, offset, through } = entry(read(journal.events), 'tool');
  assert.deepEqual([tool.status, tool.input, tool.output, offset, through], ['completed', { path: 'a' }, 'ok', 2, 3]);
});

test('tools with the same id in two runs are two tools', () => {
  const journal = new FakeJournal().start('t').tool('t', 'c', 'completed').end('t').start('u').tool('u', 'c', 'running');
  assert.deepEqual(kinds(read(journal.events)), ['prompt', 'tool', 'prompt', 'tool']);
});

test('a withdrawn answer has no text', () => {
  const journal = new FakeJournal().start('t').chunk('t', 'm', 'wrong').chunk('t', 'm', '', { isComplete: true, withdrawn: true });
  assert.equal(entry(read(journal.events), 'answer').text, '');
});

test('a prompt withdrawn from the queue leaves no entry', () => {
  const journal = new FakeJournal().start('t').end('waiting', 'cancelled').end('t', 'cancelled');
  assert.deepEqual(kinds(read(journal.events)), ['prompt', 'end']);
});

test('a question does not stay open after its run', () => {
  assert.equal(entry(read(new FakeJournal().start('t').ask('t', 'q').end('t').events), 'question').resolved?.outcome, 'cancelled');
});

test('nothing is added to a run after its end', () => {
  const journal = new FakeJournal().start('t').end('t', 'cancelled').chunk('t', 'm', 'late').tool('t', 'c', 'running');
  assert.deepEqual(kinds(read(journal.events)), ['prompt', 'end']);
});

test('folding an event twice changes nothing', () => {
  const { events } = new FakeJournal().start('t').chunk('t', 'm', 'once');
  const timeline = read(events);
  assert.equal(foldAll(timeline, events), timeline);
});

test('unchanged entries stay the same objects', () => {
  const journal = new FakeJournal().start('t').chunk('t', 'm', 'one', { isComplete: true }).chunk('t', 'n', 'two');
  const before = read(journal.events);
  const after = foldAll(before, journal.chunk('t', 'n', ' three').events);
  assert.equal(after.entries[1], before.entries[1]);
  assert.notEqual(after.entries[2], before.entries[2]);
  assert.equal((before.entries[2] as { text: string }).text, 'two');
});

test('a page begins with the first offset that its first event covers', () => {
  const { events } = new FakeJournal().start('t').chunk('t', 'm', 'abc', {}, 3);
  assert.deepEqual([read(events.slice(1)).from, read(events.slice(1)).offset], [2, 4]);
});

test('a branch at the last entry of a run includes the end of the run', () => {
  const timeline = read(new FakeJournal().start('t').chunk('t', 'm', 'a', { isComplete: true }).chunk('t', 'n', 'b', { isComplete: true }).end('t').events);
  assert.deepEqual(timeline.entries.map((one) => branchPoint(timeline, one)), [1, 2, 4]);
});

test('a journal split at any event and joined gives the same timeline', () => {
  for (let seed = 0; seed < 120; seed += 1) {
    const events = randomJournal(seed, 5);
    const whole = read(events);
    for (let cut = 0; cut <= events.length; cut += 1) {
      assert.deepEqual(join(read(events.slice(0, cut)), read(events.slice(cut))), whole, `seed ${seed}, cut ${cut}`);
    }
  }
});

test('a journal read in pages from its end gives the same timeline', () => {
  for (let seed = 0; seed < 300; seed += 1) {
    const random = new SeededRandom(seed + 5_000);
    const events = randomJournal(seed, 1 + random.below(30));
    let timeline = emptyTimeline();
    let until = events.length;
    while (until > 0) {
      const from = Math.max(0, until - 1 - random.below(20));
      timeline = join(read(events.slice(from, until)), timeline);
      until = from;
    }
    assert.deepEqual(timeline, read(events), `seed ${seed}`);
  }
});

test('a journal folded in parts gives the same timeline', () => {
  for (let seed = 0; seed < 200; seed += 1) {
    const random = new SeededRandom(seed);
    const events = randomJournal(seed, 8);
    let timeline = emptyTimeline();
    for (let from = 0; from < events.length; ) {
      const to = from + 1 + random.below(6);
      timeline = foldAll(timeline, events.slice(from, to));
      from = to;
    }
    assert.deepEqual(timeline, read(events), `seed ${seed}`);
  }
});

test('a timeline made from a state has its messages, tools and questions', () => {
  const message = { timestamp: '2026-01-01T00:00:00Z', isComplete: true, taskId: 't' };
  const { payload: question } = new FakeJournal().ask('t', 'q').events[0] as SessionEvent<'QUESTION'>;
  const timeline = timelineOfState({
    epoch: 'e', offset: 9, historyTruncated: true, activity: 'idle', capabilities: [], commands: [], plan: [], queue: [],
    queueModes: { followUp: 'all', steering: 'all' }, settings: { autoApprove: false, maxTokens: 1, model: '', temperature: 1 }, tokenUsage: { input: 0, output: 0, total: 0 },
    conversationHistory: [{ id: 'a', type: 'user', content: 'hi', ...message }, { id: 'b', type: 'assistant', content: 'ho', ...message }],
    currentTask: { id: 't', status: 'running', prompt: 'hi', startTime: message.timestamp },
    tools: [{ toolCallId: 'c', kind: 'read', name: 'read', title: 'Read', status: 'running' }],
    questions: [question],
  });
  assert.deepEqual(kinds(timeline), ['prompt', 'answer', 'tool', 'question']);
  const after = foldAll(timeline, [{ ...new FakeJournal().tool('t', 'c', 'completed').events[0]!, offset: 10 }]);
  assert.equal(entry(after, 'tool').tool.status, 'completed');
});

test('many chunks of one answer are folded quickly', () => {
  const journal = new FakeJournal().start('t');
  for (let piece = 0; piece < 5_000; piece += 1) journal.chunk('t', 'm', 'word '.repeat(8));
  const starts = Array.from({ length: 2_000 }, (_, index) => new FakeJournal().start(`x${index}`).events[0]!);
  const initial = foldAll(read(starts.map((event, index) => ({ ...event, offset: index + 1 }))), []);
  let timeline = initial;
  const before = Date.now();
  for (const event of journal.events) timeline = foldAll(timeline, [{ ...event, offset: event.offset + 2_000 }]);
  assert.equal((timeline.entries.at(-1) as { text: string }).text.length, 200_000);
  assert.ok(Date.now() - before < 5_000);
});
