# SPDX-License-Identifier: Apache-2.0
"""A model on this machine that does what the newest message of the user says.

It speaks the chat completions of OpenAI, as server-sent events. `call NAME {"json": 1}` in the
message is a tool call, one for each request, and `wait 2` delays every answer of that turn by two
seconds. Anything else is answered by some text.
"""

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_CALL = re.compile(r"\bcall (\w+) (\{.*\})")
# What OpenClaw tells the model by itself, after the message of the user.
_NOTE = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT"
_WAIT = re.compile(r"\bwait (\d+)\b")


@contextmanager
def serving_model() -> Iterator[int]:
    """Serve the model, and give its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content or [])


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the message of the assistant."""
    messages = request["messages"]
    said = [
        at
        for at, each in enumerate(messages)
        if each["role"] == "user" and not _text(each.get("content")).lstrip().startswith(_NOTE)
    ]
    asked = max(said, default=0)
    script = _text(messages[asked].get("content"))
    if found := _WAIT.search(script):
        time.sleep(int(found[1]))
    # A request without tools is one for a summary, which quotes what was said.
    calls = _CALL.findall(script) if request.get("tools") else []
    done = sum(each["role"] == "tool" for each in messages[asked:])
    if done >= len(calls):
        return {"role": "assistant", "content": f"Done: {len(calls)} calls."}
    name, arguments = calls[done]
    call = {
        "index": 0,
        "id": f"call_{time.time_ns():x}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
    return {"role": "assistant", "content": "", "tool_calls": [call]}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Log nothing."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = _answer(request)
        head = {"id": "answer", "created": int(time.time()), "model": request.get("model")}
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        reason = "tool_calls" if "tool_calls" in message else "stop"
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
            self._reply("application/json", json.dumps(whole))
            return
        chunk = {**head, "object": "chat.completion.chunk"}
        parts = [
            {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {**chunk, "choices": [], "usage": usage},
        ]
        events = [*map(json.dumps, parts), "[DONE]"]
        self._reply("text/event-stream", "".join(f"data: {event}\n\n" for event in events))

    def _reply(self, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
