"""An MCP server whose effects can be counted from outside: every call appends a line to the witness file.

`mark` must never happen twice; `touch` may. The file is opened for each call and written in one go, so a line is there
or not there, whatever is killed. Plain JSON-RPC without a library, so that it starts in a moment; it can be killed
around a call where a built-in server can.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from annabelle.core.failpoints import failpoint

_KEY = {
    "type": "object",
    "properties": {"key": {"type": "string", "description": "What is noted"}},
    "required": ["key"],
}
_MARK = {
    "name": "mark",
    "description": "Do something that must not be done twice.",
    "inputSchema": _KEY,
    "annotations": {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True},
}
_TOUCH = {
    "name": "touch",
    "description": "Do something that may be done again.",
    "inputSchema": _KEY,
    "annotations": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
}


def _note(name: str, key: str) -> None:
    line = json.dumps({"tool": name, "key": key, "pid": os.getpid()}) + "\n"
    descriptor = os.open(os.environ["WITNESS_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        info = {"name": "witness", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [_MARK, _TOUCH]}
    if method == "tools/call":
        name, key = params["name"], params["arguments"]["key"]
        failpoint("server.before_tool")
        _note(name, key)
        failpoint("server.after_tool")
        return {"content": [{"type": "text", "text": f"{name}ed {key}"}]}
    return {} if method == "ping" else None


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked or "method" not in asked:
            continue
        result = answer(asked["method"], asked.get("params") or {})
        outcome = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **outcome}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
