"""A program: Python's `websockets`, with the token in the header or with a ticket."""
import asyncio
import json
import sys

import websockets


async def main(address, way, secret):
    query = f"?ticket={secret}" if way == "ticket" else ""
    headers = {} if way == "ticket" else {"Authorization": f"Bearer {secret}"}
    async with websockets.connect(f"ws://{address}/ws{query}", extra_headers=headers) as socket:
        assert json.loads(await socket.recv())["type"] == "CONNECTION_ACK"
        prompt = {"text": "/stream 5", "mode": "act"}
        await socket.send(json.dumps({"type": "SUBMIT_PROMPT", "payload": prompt}))
        answer = ""
        async for text in socket:
            message = json.loads(text)
            if message["type"] == "TASK_OUTPUT_CHUNK":
                answer += message["payload"]["content"]
            if message["payload"].get("status") == "completed":
                print(f"{way}|{answer}")
                return


asyncio.run(main(*sys.argv[1:]))
