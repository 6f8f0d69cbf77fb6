"""Bounds on waits, scaled by how slow this machine is at the moment, so that a busy machine is slow and not red."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

# The hub lets a client wait ten minutes at most, and tests wait a minute where nothing is slow.
MAX_SLOWNESS = 10.0
# A machine on which the benchmarks' budgets hold takes this long for `_work`.
REFERENCE_SECONDS = 0.0015
_LOADS = Path("/proc/loadavg")
_TIMES = Path("/proc/stat")
_STEPS = 10_000
# The program's own bounds that a slow machine can exceed, as their defaults are.
_PRODUCT_BOUNDS = {
    "AGENT_START_TIMEOUT_SECONDS": 60.0,
    "EMBEDDING_TIMEOUT_SECONDS": 10.0,
    "GUARDIAN_TIMEOUT_SECONDS": 15.0,
    "LLM_TIMEOUT_SECONDS": 90.0,
    "SERVER_PING_TIMEOUT_SECONDS": 5.0,
    "SERVER_START_TIMEOUT_SECONDS": 30.0,
}
_MAX_PRODUCT_BOUND = 120.0
# Two waits that begin within this time share one measurement.
_FRESH_SECONDS = 1.0


def seconds(bound: float) -> float:
    """`bound` on an idle machine as fast as the reference, and more on one that is slower or has other work."""
    return bound * slowness()


def product_bounds() -> dict[str, str]:
    """Settings for a program under test: its own bounds, scaled the same way."""
    return {name: f"{min(seconds(bound), _MAX_PRODUCT_BOUND):g}" for name, bound in _PRODUCT_BOUNDS.items()}


def slowness() -> float:
    """How many times as long as on an idle reference machine work may take now: from 1 to `MAX_SLOWNESS`."""
    return _meter.read()


class _SlownessMeter:
    def __init__(self) -> None:
        self._measured_at = float("-inf")
        self._slowness = 1.0
        self._ticks = 0, 0

    def read(self) -> float:
        now = time.monotonic()
        if now - self._measured_at > _FRESH_SECONDS:
            found = max(1.0, _python_speed()) * max(1.0, _load_per_core()) / self._share_of_time()
            self._slowness, self._measured_at = min(found, MAX_SLOWNESS), now
        return self._slowness

    def _share_of_time(self) -> float:
        """The part of the time since it was last asked in which this machine was not kept waiting for its cores."""
        with contextlib.suppress(OSError, ValueError):
            ticks = [int(number) for number in _TIMES.read_text().split("\n", 1)[0].split()[1:9]]
            passed, stolen = sum(ticks) - self._ticks[0], ticks[7] - self._ticks[1]
            self._ticks = sum(ticks), ticks[7]
            return max(0.1, 1 - stolen / max(passed, 1))
        return 1.0


def _python_speed() -> float:
    """CPU time of a fixed piece of Python against the reference. The load is counted apart, so it is not wall time."""
    return min(_work() for _ in range(2)) / REFERENCE_SECONDS


def _work() -> float:
    began = time.thread_time()
    total = 0
    for step in range(_STEPS):
        total = (total * 31 + step) % 1_000_003
    return time.thread_time() - began


def _load_per_core() -> float:
    """Processes that want a core, per core: the last minute's, or those of this moment where they are more."""
    try:
        wanting = os.getloadavg()[0]
    except OSError:
        return 1.0
    with contextlib.suppress(OSError, IndexError, ValueError):
        wanting = max(wanting, float(_LOADS.read_text().split()[3].partition("/")[0]))
    return wanting / (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


_meter = _SlownessMeter()
