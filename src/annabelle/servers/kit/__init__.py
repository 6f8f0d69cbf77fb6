"""What every server is made of: typed tools, clear errors, progress, cancellation, stdio.

class Clock:
    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def what_time(self, zone: Annotated[str, Field(description="A time zone")] = "UTC") -> Time:
        \"""Tell the time in a time zone.\"""

def main() -> None:
    run(lambda: ToolServer("clock", [Clock()]))

A server with more to it has a `server.build(config)` in its package and starts with `run_listed`, as all our own do.
"""

from annabelle.servers.kit.call import Call, StopSign, current_call, in_thread
from annabelle.servers.kit.lazy_import import (  # before the next lines, which load the SDK
    DeferredPackage,
    deferred_module,
)
from annabelle.servers.kit.run import own_settings, run, run_listed
from annabelle.servers.kit.server import ToolServer
from annabelle.servers.kit.tools import Result, tool

__all__ = [
    "Call",
    "DeferredPackage",
    "Result",
    "StopSign",
    "ToolServer",
    "current_call",
    "deferred_module",
    "in_thread",
    "own_settings",
    "run",
    "run_listed",
    "tool",
]
