"""An external server that tells who it is, and says what it is told: `python -m support.servers.who`.

Without a library, it starts at once.
"""

import json
import os
import sys
from typing import Any

READS = {"readOnlyHint": True}
TEXT = {"properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": False}
TOOLS = [
    {"name": "who", "description": "Who am I?", "inputSchema": {"type": "object"}, "annotations": READS},
    {"name": "say", "description": "Say it.", "inputSchema": {"type": "object", **TEXT}, "annotations": READS},
]


def answer(method: str, params: dict[str, Any]) -> dict[str, object] | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "who", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        told: dict[str, object] = {"environment": dict(os.environ), "folder": os.getcwd(), "pid": os.getpid()}
        if params["name"] == "say":
            told = {"said": params["arguments"]["text"]}
        return {"content": [{"type": "text", "text": json.dumps(told)}], "structuredContent": told}
    return None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message["method"], message.get("params") or {})
        end = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **end}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
