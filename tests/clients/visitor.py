"""Somebody who comes to a gateway in a container: `first` with the setup link, `again` with the password."""
import asyncio
import json
import sys
import urllib.request

import websockets

ADDRESS = "localhost:7717"
NAME, PASSWORD = "admin", "correct horse battery staple"


def fetch(path, body=None, token=None):
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{ADDRESS}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()


async def says(socket, text, until):
    prompt = {"text": text, "mode": "act"}
    await socket.send(json.dumps({"type": "SUBMIT_PROMPT", "payload": prompt}))
    answer = ""
    async for frame in socket:
        message = json.loads(frame)
        if message["type"] == "TASK_OUTPUT_CHUNK":
            answer += message["payload"]["content"]
        if until(message):
            return answer


async def first(link):
    setup = {"token": link, "username": NAME, "password": PASSWORD}
    token = json.loads(fetch("/api/setup", setup))["token"]
    headers = {"Authorization": f"Bearer {token}"}
    async with websockets.connect(f"ws://{ADDRESS}/ws", extra_headers=headers) as socket:
        session = json.loads(await socket.recv())["payload"]["sessionId"]
        answer = await says(socket, "/stream 5", lambda message: message["payload"].get("status") == "completed")
        # Still under way when the visitor leaves.
        await says(socket, "/stream 100000 50", lambda message: message["type"] == "TASK_OUTPUT_CHUNK")
    metrics = urllib.request.urlopen("http://localhost:9717/metrics", timeout=20).read().decode()
    counted = [line for line in metrics.splitlines() if line.startswith("switchboard_")]
    print(json.dumps({"session": session, "answer": answer, "page": fetch("/"), "metrics": len(counted)}))


async def again(session):
    token = json.loads(fetch("/api/auth/login", {"username": NAME, "password": PASSWORD}))["token"]
    print(fetch(f"/api/sessions/{session}/export?format=markdown", token=token))


asyncio.run({"first": first, "again": again}[sys.argv[1]](sys.argv[2]))
