"""An MCP server of the plainest kind, with no code of ours in it: what it says of itself never changes.

Old homes have accepted it, so not a word of it may change.
"""

from __future__ import annotations

import json
import sys
from typing import Any

TOOL = {
    "name": "greet",
    "description": "Greet somebody.",
    "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        info = {"name": "unchanging", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": f"Hello, {params['arguments']['name']}."}]}
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
