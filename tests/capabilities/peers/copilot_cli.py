"""Copilot CLI: the agent's side of its contract, written from the contract alone.

Newline-delimited JSON-RPC 2.0 over stdin and stdout. What it answers to a request stands in the
request itself, as JSON: in `message` of `chat`, in `prompt` of `customize`, in `x-play` of the
specification of `generate`. Members: `chunks` ([text, done, index]…), `result`, `error`, and `until`, a
file: nothing more is read from stdin before it exists. Every line that it reads is appended to the file
that is its only argument, with its process id.
"""

import json
import os
import sys
import time

LOG = sys.argv[1]


def log(line):
    with open(LOG, "a", encoding="utf-8") as log_file:
        log_file.write(json.dumps({"pid": os.getpid(), "line": line}) + "\n")


def write(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def play_of(method, params):
    if method == "generate":
        return params["spec"].get("x-play", {})
    text = params["prompt"] if method == "customize" else params["message"]
    # The answer to a clarification follows the text.
    return json.loads(text.split("\n")[0])


def answer(request_id, method, params):
    if method == "initialize":
        capabilities = {"codeGeneration": True, "customization": True, "streaming": True}
        server = {"serverName": "copilot-cli", "serverVersion": "1.2.0"}
        return write({"id": request_id, "result": {**server, "capabilities": capabilities}})
    play = play_of(method, params)
    for text, done, index in play.get("chunks", []):
        chunk = {"requestId": request_id, "chunk": text, "done": done, "index": index}
        write({"method": "stream/chunk", "params": chunk})
    if "error" in play:
        write({"id": request_id, "error": play["error"]})
    else:
        write({"id": request_id, "result": play.get("result", {"message": "ok", "suggestions": []})})
    while "until" in play and not os.path.exists(play["until"]):
        time.sleep(0.01)


def main():
    print("diagnostics are not part of the protocol", file=sys.stderr)
    for text in sys.stdin:
        line = json.loads(text)
        assert line["jsonrpc"] == "2.0", line
        log(line)
        if line["method"] == "exit" and "id" not in line:
            return
        answer(line["id"], line["method"], line.get("params"))


main()
