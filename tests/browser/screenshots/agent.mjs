// An agent for the pictures in the documents. It speaks the Agent Client Protocol and plays one of two
// scenes, whatever it is asked: a test is repaired, or branches are to be removed.
import { createInterface } from 'node:readline';

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const waiting = new Map();
let asked = 0;
const ask = (method, params) =>
  new Promise((resolve) => {
    const id = (asked += 1);
    waiting.set(id, resolve);
    send({ id, method, params });
  });

const text = (words) => ({ type: 'text', text: words });
const OPTIONS = [
  { optionId: 'once', kind: 'allow_once', name: 'Allow once' },
  { optionId: 'always', kind: 'allow_always', name: 'Always allow' },
  { optionId: 'no', kind: 'reject_once', name: 'Deny' },
];
const CODE = `const day = (date: Date, shift = 0) =>
  Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + shift);`;

/** What a scene can do in one conversation. */
function stage(sessionId) {
  const tell = (sessionUpdate, more) => send({ method: 'session/update', params: { sessionId, update: { sessionUpdate, ...more } } });
  const plan = (...statuses) =>
    tell('plan', { entries: ['Find out when it fails', 'Count days in UTC', 'Run the tests', 'Commit it'].map((content, place) => ({ content, priority: 'medium', status: statuses[place] })) });
  const tool = (toolCallId, title, kind, rawInput) => tell('tool_call', { toolCallId, title, kind, status: 'in_progress', rawInput });
  const done = (toolCallId, content) => tell('tool_call_update', { toolCallId, status: 'completed', content });
  const permission = (toolCallId, title, kind, rawInput) => ask('session/request_permission', { sessionId, toolCall: { toolCallId, title, kind, status: 'pending', rawInput }, options: OPTIONS });
  return { tell, plan, tool, done, permission };
}

async function repair({ tell, plan, tool, done, permission }) {
  tell('session_info_update', { title: 'The calendar test fails at the end of a month' });
  tell('agent_thought_chunk', { messageId: 'thought', content: text('It passes today and fails on the 31st, so something adds a month to a day that the next month does not have.') });
  plan('in_progress', 'pending', 'pending', 'pending');
  tool('read', 'Read src/calendar.ts', 'read', { path: 'src/calendar.ts' });
  done('read', [{ type: 'content', content: text('export const tomorrow = (date: Date) => new Date(date.getTime() + 86_400_000);') }]);
  plan('completed', 'in_progress', 'pending', 'pending');
  tell('tool_call', { toolCallId: 'test', title: 'npm test -- calendar', kind: 'execute', status: 'pending', rawInput: { command: 'npm test -- calendar' } });
  await permission('test', 'npm test -- calendar', 'execute', { command: 'npm test -- calendar' });
  done('test', [{ type: 'content', content: text('12 passed, 0 failed') }]);
  plan('completed', 'completed', 'completed', 'in_progress');
  tell('agent_message_chunk', {
    messageId: 'answer',
    content: text(`The day after was counted in **local time**, where one day in spring has 23 hours. It is counted in UTC now:\n\n\`\`\`ts\n${CODE}\n\`\`\`\n\nAll 12 tests of the calendar pass, also on the 31st. Shall I commit it?`),
  });
}

async function tidy({ tell, permission }) {
  tell('session_info_update', { title: 'Tidy up old branches' });
  tell('agent_message_chunk', { messageId: 'answer', content: text('Three branches were merged more than a month ago. I would remove them:\n\n- `fix-login`\n- `new-router`\n- `spike-cache`') });
  tell('tool_call', { toolCallId: 'rm', title: 'git branch -d fix-login new-router spike-cache', kind: 'execute', status: 'pending', rawInput: { command: 'git branch -d fix-login new-router spike-cache' } });
  await permission('rm', 'git branch -d fix-login new-router spike-cache', 'execute', { command: 'git branch -d fix-login new-router spike-cache' });
}

async function hear({ id, method, params, result }) {
  if (method === undefined) return waiting.get(id)?.(result);
  if (method === 'initialize') return send({ id, result: { protocolVersion: 1, agentCapabilities: {}, authMethods: [], agentInfo: { name: 'scenes', version: '1' } } });
  if (method === 'session/new') return send({ id, result: { sessionId: `scene-${id}` } });
  if (method === 'session/prompt') {
    await (params.prompt.some((block) => block.text?.includes('branches')) ? tidy : repair)(stage(params.sessionId));
    return send({ id, result: { stopReason: 'end_turn' } });
  }
  if (id !== undefined) return send({ id, error: { code: -32601, message: `no ${method} here` } });
}

createInterface({ input: process.stdin }).on('line', (line) => void hear(JSON.parse(line)));
