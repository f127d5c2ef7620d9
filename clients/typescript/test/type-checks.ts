// Type checks: compiled, never run. What the types must accept and what they must reject.
import { Gateway } from '../dist/index.js';
import type { Protocol, SessionEvent } from '../dist/index.js';

export async function typed(): Promise<void> {
  const account = await new Gateway('http://gateway.test').login('name', 'password');
  const session = await account.open({ agent: 'demo' });
  const state: Protocol.FullState = await session.send('REQUEST_STATE', {});
  const done: Protocol.Done = await session.send('STEER', { text: 'left' });
  const result: Protocol.QueryResult = await session.send('QUERY', { kind: 'models' });
  // @ts-expect-error there is no such command
  await session.send('STEAR', { text: 'left' });
  // @ts-expect-error a prompt has a mode
  await session.send('SUBMIT_PROMPT', { text: 'hello' });
  // @ts-expect-error exactly one of ok, optionId, value and ids
  await session.answer('qst_1', {});
  session.on('event', (event: SessionEvent) => {
    if (event.type === 'TOOL_UPDATE') event.payload.toolCallId.toUpperCase();
    // @ts-expect-error not every event has it
    event.payload.toolCallId;
  });
  // @ts-expect-error a view is not changed
  session.store.view.offset = 3;
  void [state, done, result];
}
