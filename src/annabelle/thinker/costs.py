"""What this process has spent on models, and how its agent stands in the ledger of the hub (`GET /cost-status`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from annabelle.core.contract import TokenUsage
from annabelle.core.errors import AnnabelleError
from annabelle.core.tools import JsonObject

_HUB_SECONDS: Final = 5.0
_log = logging.getLogger(__name__)


class CostMeter:
    """Adds up the calls of one process. Only the hub pauses the agent."""

    def __init__(self, fetch_hub_status: Callable[[], Awaitable[JsonObject]] | None = None) -> None:
        self._fetch_hub_status = fetch_hub_status
        self._calls = 0
        self._usage = TokenUsage()

    def add(self, usage: TokenUsage) -> None:
        self._calls += 1
        self._usage = self._usage + usage

    def status(self) -> JsonObject:
        return {"paused": False, "calls": self._calls, **self._usage.model_dump()}

    async def fetch_status(self) -> JsonObject:
        """`status` with the hub's spending window and pause, if the hub answers."""
        if self._fetch_hub_status is None:
            return self.status()
        try:
            async with asyncio.timeout(_HUB_SECONDS):
                return {**self.status(), **await self._fetch_hub_status()}
        except (AnnabelleError, TimeoutError) as error:
            _log.warning("the hub did not return the cost status: %s", error)
            return self.status()
