"""The parts every server is built from: typed tools, clear errors, progress, cancellation and stdio.

class Clock:
    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def what_time(self, zone: Annotated[str, Field(description="A time zone")] = "UTC") -> Time:
        \"""Tell the time in a time zone.\"""

def main() -> None:
    run(lambda: ToolServer("clock", [Clock()]))

A larger server has a `server.build(config)` in its package and starts with `run_listed`, as all built-in servers do.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from annabelle.servers.kit.lazy_import import DeferredPackage, deferred_module  # before anything that loads the SDK

if TYPE_CHECKING:
    from annabelle.servers.kit.call import Call, StopSign, current_call, in_thread
    from annabelle.servers.kit.server import ToolServer
    from annabelle.servers.kit.server_process import own_settings, run, run_listed
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

# Worker processes use only small modules of this package. They would pay for the SDK if it were imported here.
_MODULES = {
    "Call": "call",
    "Result": "tools",
    "StopSign": "call",
    "ToolServer": "server",
    "current_call": "call",
    "in_thread": "call",
    "own_settings": "server_process",
    "run": "server_process",
    "run_listed": "server_process",
    "tool": "tools",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
