"""What this process has spent on models so far (`GET /cost-status`); the lasting book is the hub's ledger."""

from __future__ import annotations

from annabelle.core.contract import Usage
from annabelle.core.tools import JsonObject


class CostMeter:
    """Adds up the calls of one process. It never pauses the agent: the hub decides that, and asks it to go on."""

    def __init__(self) -> None:
        self._calls = 0
        self._usage = Usage()

    def add(self, usage: Usage) -> None:
        self._calls += 1
        self._usage = self._usage + usage

    def status(self) -> JsonObject:
        return {"paused": False, "calls": self._calls, **self._usage.model_dump()}
