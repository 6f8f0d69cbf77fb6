"""A running part of the hub."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Step = Callable[[], Awaitable[None]]


async def _do_nothing() -> None: ...


@dataclass(frozen=True, slots=True)
class Component:
    """Components are started in order, then resumed in order, and stopped in reverse.

    `resume` runs once everything was started, often to take up what the last process left. `stop` is safe after a
    failed start.
    """

    start: Step = _do_nothing
    resume: Step = _do_nothing
    stop: Step = _do_nothing
