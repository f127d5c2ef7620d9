// An agent that changes a file of many lines, and prints a long patch. Speaks the Agent Client Protocol.
import { createInterface } from 'node:readline';

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const update = (sessionId, update) => send({ method: 'session/update', params: { sessionId, update } });
const LINES = 10_000;

/** Every line changes: 10 000 lines removed, 10 000 added. */
const version = (letter) => Array.from({ length: LINES }, (_, line) => `${letter} = ${line};`).join('\n');
/** Few lines change: the lines in between are the same. */
const sparse = (letter) => Array.from({ length: LINES }, (_, line) => `${line % 40 === 0 ? letter : 'k'} = ${line};`).join('\n');
const patch = () => ['--- a/x.rs', '+++ b/x.rs', `@@ -1,${LINES} +1,${LINES} @@`, ...Array.from({ length: 2 * LINES }, (_, line) => `${line % 2 === 0 ? '-' : '+'}let x = ${line};`)].join('\n');

function change(sessionId, toolCallId, path, oldText, newText) {
  update(sessionId, { sessionUpdate: 'tool_call', toolCallId, title: `Edit ${path}`, kind: 'edit', status: 'completed', content: [{ type: 'diff', path, oldText, newText }] });
}

function hear({ id, method, params }) {
  if (method === 'initialize') return send({ id, result: { protocolVersion: 1, agentCapabilities: {}, authMethods: [], agentInfo: { name: 'large-diffs', version: '1' } } });
  if (method === 'session/new') return send({ id, result: { sessionId: `s-${id}` } });
  if (method === 'session/prompt') {
    const { sessionId, prompt } = params;
    const wanted = prompt.map((block) => block.text ?? '').join(' ');
    if (wanted.includes('every line')) change(sessionId, 'every', 'src/every.rs', version('a'), version('b'));
    if (wanted.includes('few lines')) change(sessionId, 'few', 'src/few.rs', sparse('a'), sparse('b'));
    const answer = wanted.includes('patch') ? `\`\`\`diff\n${patch()}\n\`\`\`\n\nThat was the patch.` : 'Done.';
    update(sessionId, { sessionUpdate: 'agent_message_chunk', messageId: `m-${id}`, content: { type: 'text', text: answer } });
    return send({ id, result: { stopReason: 'end_turn' } });
  }
  if (id !== undefined) send({ id, error: { code: -32601, message: `no ${method} here` } });
}

createInterface({ input: process.stdin }).on('line', (line) => hear(JSON.parse(line)));
