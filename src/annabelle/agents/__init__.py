"""Kinds of agents, one file each. `find_kind` tells which one answers in a channel.

A file here that has a `KIND` is a kind; nothing else has to name it (AGE-11).
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from annabelle.agents.kind import AgentKind


@cache
def list_kinds() -> tuple[AgentKind, ...]:
    modules = (import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    return tuple(module.KIND for module in modules if hasattr(module, "KIND"))


def is_chat(channel: str) -> bool:
    """Whether it is a channel in which people talk, and not that of a kind of its own."""
    return all(kind.channel != channel for kind in list_kinds())


def find_kind(channel: str) -> AgentKind:
    """The kind of the agent in the threads of a channel. What is no other kind's is a chat's."""
    named = [kind for kind in list_kinds() if kind.channel == channel]
    return named[0] if named else next(kind for kind in list_kinds() if kind.channel is None)
