"""The current tool call: who is calling, progress, and blocking work that stops when the call is cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, TypeVar, cast

import anyio

from annabelle.core.errors import TurnCancelled
from annabelle.core.trust import Trust
from annabelle.servers.kit.json_access import get_object

META_KEY = "annabelle"
"""The key of a request's `_meta` under which the hub sends who calls."""

Caller = Literal["agent", "api", "cli", "hub"]
_CALLERS: tuple[Caller, ...] = ("agent", "api", "cli", "hub")
_TEXTS = ("trace_id", "agent_id", "user_id", "chat_id", "call_id", "message_id", "thread_id", "channel")

Progress = Callable[[float, float | None, str | None], Awaitable[None]]


async def _ignore_progress(done: float, total: float | None, message: str | None) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool. The ids come from the hub's authenticated facts, never from the arguments."""

    trace_id: str | None = None
    agent_id: str | None = None
    user_id: str | None = None
    chat_id: str | None = None
    call_id: str | None = None
    message_id: str | None = None
    caller: Caller | None = None
    thread_id: str | None = None
    channel: str | None = None
    trust: Trust | None = None
    """How far the hub trusts the content of this call; None when it does not say (`provenance` in the manifest)."""
    origins: tuple[str, ...] = ()
    """Tools whose untrusted output had been seen by then."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values among the arguments that must not be written down; the kit masks them in this process's log."""
    secret_sites: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], repr=False)
    """By such a value: the web addresses of the vault item it is of. It is for no other site."""
    _progress: Progress = _ignore_progress

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress. Does nothing unless the caller asked for it."""
        await self._progress(done, total, message)


_current: ContextVar[Call] = ContextVar("annabelle_call")


def current_call() -> Call:
    """The call being served, or an anonymous one outside of any call."""
    return _current.get(None) or Call()


def enter_call(call: Call) -> None:
    """Make `call` the current call of this task."""
    _current.set(call)


def read_call(meta: Mapping[str, object] | None, progress: Progress) -> Call:
    """The call as the request's `_meta` describes it. What is missing or of the wrong type is left out."""
    facts = get_object(meta or {}, META_KEY)

    def get_text(name: str) -> str | None:
        value = facts.get(name)
        return value if isinstance(value, str) and value else None

    caller, trust = facts.get("caller"), facts.get("trust")
    return Call(
        **{name: get_text(name) for name in _TEXTS},
        caller=next((known for known in _CALLERS if known == caller), None),
        # An unknown label is treated as untrusted.
        trust=None if trust is None else "trusted" if trust == "trusted" else "untrusted",
        origins=_texts(facts.get("origins")),
        secrets=_texts(facts.get("secrets")),
        secret_sites={value: _texts(of) for value, of in get_object(facts, "secret_sites").items()},
        _progress=progress,
    )


def _texts(values: object) -> tuple[str, ...]:
    listed = cast("list[object]", values) if isinstance(values, list) else []
    return tuple(value for value in listed if isinstance(value, str))


T = TypeVar("T")

SETTLE_SECONDS = 5.0
"""How long a cancelled call waits for its thread to reach the next check, so that it leaves nothing half done."""


class StopSign:
    """Checked between bounded pieces of blocking work; raises once the call was cancelled."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def stop(self) -> None:
        self._event.set()

    @property
    def stopped(self) -> bool:
        return self._event.is_set()

    def check(self) -> None:
        if self._event.is_set():
            raise TurnCancelled("The call was cancelled.")


async def in_thread(work: Callable[[StopSign], T]) -> T:
    """Run `work` in a thread. A cancelled call raises the sign and waits, bounded, until the thread has stopped."""
    sign = StopSign()
    running = asyncio.ensure_future(asyncio.to_thread(work, sign))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        sign.stop()
        with anyio.move_on_after(
            SETTLE_SECONDS, shield=True
        ):  # the SDK's scopes cancel every wait inside, again and again
            await asyncio.wait([running])
        if running.done() and not running.cancelled():
            running.exception()  # looked at, so that asyncio does not report it as forgotten
        raise
