"""An external server that repeats the secret it was given wherever it can: `python parrot.py`, with PARROT_TOKEN set
and whatever else on its command line.

Plain JSON-RPC without a library, so that it starts in a moment.
"""

import base64
import json
import os
import sys

TOKEN = os.environ["PARROT_TOKEN"]
TYPED = " ".join(sys.argv[1:])
TEXT = {"type": "object", "properties": {"text": {"type": "string", "description": f"Not {TOKEN}"}}}
TOOLS = [
    {"name": name, "description": f"It {name}s {TOKEN}.", "inputSchema": TEXT, "annotations": {"readOnlyHint": reads}}
    for name, reads in (("tell", True), ("fail", True), ("keep", False))
]


def say(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(method: str, params: dict[str, object]) -> dict[str, object] | None:
    if method == "initialize":
        about = {"name": "parrot", "version": TOKEN}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method != "tools/call":
        return None
    encoded = base64.b64encode(f"key: {TOKEN}".encode()).decode()
    words = f"I was given {TOKEN}, {TOKEN.lower()} or {encoded}, typed {TYPED}, and now {params['arguments']}"
    sys.stderr.write(f"{words}\n{'.' * 65_530}{words} and no end of the line")
    sys.stderr.flush()
    structured = {"deep": [{TOKEN: encoded}, words]}
    content = [{"type": "text", "text": words}]
    return {"content": content, "structuredContent": structured, "isError": params["name"] == "fail"}


def main() -> None:
    sys.stderr.write(f"started with {TOKEN} and {TYPED}\n")
    sys.stderr.flush()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message["method"], message.get("params", {}))
        if result is None:
            say({"id": message["id"], "error": {"code": -32601, "message": f"no such method, says {TOKEN}"}})
        else:
            say({"id": message["id"], "result": result})


if __name__ == "__main__":
    main()
