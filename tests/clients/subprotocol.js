// A browser-like client: Node's `ws`, the token as a subprotocol. Prints what the agent answered.
const WebSocket = require('ws');
const [address, token] = process.argv.slice(2);
const socket = new WebSocket(`ws://${address}/ws`, ['switchboard.v1', `bearer.${token}`]);
let answer = '';
socket.on('message', (data) => {
  const { type, payload } = JSON.parse(data);
  if (type === 'CONNECTION_ACK') {
    const prompt = { text: '/stream 5', mode: 'act' };
    socket.send(JSON.stringify({ type: 'SUBMIT_PROMPT', payload: prompt }));
  }
  if (type === 'TASK_OUTPUT_CHUNK') answer += payload.content;
  if (type === 'TASK_STATUS_UPDATE' && payload.status === 'completed') {
    console.log(`${socket.protocol}|${answer}`);
    socket.close(1000);
  }
});
socket.on('error', (error) => { console.error(error); process.exit(1); });
