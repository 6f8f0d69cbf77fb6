"""An MCP server whose effects can be counted from outside: every call appends a line to the witness file.

`mark` must never happen twice; `touch` may. The file is opened for each call and written in one go, so a line is there
or not there, whatever is killed.
"""

from __future__ import annotations

import json
import os
from typing import Annotated

from pydantic import Field

from annabelle.servers.kit import Result, ToolServer, run, tool

Key = Annotated[str, Field(description="What is noted")]


class Noted(Result):
    done: str

    def text(self) -> str:
        return self.done


def _note(name: str, key: str) -> None:
    line = json.dumps({"tool": name, "key": key, "pid": os.getpid()}) + "\n"
    descriptor = os.open(os.environ["WITNESS_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@tool(read_only=False, destructive=True, idempotent=False, open_world=True)
async def mark(key: Key) -> Noted:
    """Do something that must not be done twice."""
    _note("mark", key)
    return Noted(done=f"marked {key}")


@tool(read_only=False, destructive=False, idempotent=True, open_world=False)
async def touch(key: Key) -> Noted:
    """Do something that may be done again."""
    _note("touch", key)
    return Noted(done=f"touched {key}")


def main() -> None:
    run(lambda: ToolServer("witness", [mark, touch]))


if __name__ == "__main__":
    main()
