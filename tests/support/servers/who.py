"""An external server that tells who it is: `python -m support.servers.who`. Without a library, it starts at once."""

import json
import os
import sys

TOOL = {
    "name": "who",
    "description": "Who am I?",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}


def answer(method: str) -> dict[str, object] | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "who", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        who = {"environment": dict(os.environ), "folder": os.getcwd(), "pid": os.getpid()}
        return {"content": [{"type": "text", "text": json.dumps(who)}], "structuredContent": who}
    return None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message["method"])
        end = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **end}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
