"""The model service: one per thinker, the only thing that calls a model (LLM-01)."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from annabelle.core.contract import AgentProfile
from annabelle.core.home import Home
from annabelle.core.ports import Ledger
from annabelle.core.settings import Settings
from annabelle.llm.types import ModelChoice, ModelEvent, ModelRequest


class ModelService:
    """Chooses a model, streams its answers, and books every call: reserved before, settled after (CST-09)."""

    def __init__(self, settings: Settings, home: Home, ledger: Ledger, agent: AgentProfile) -> None:
        self._settings, self._home, self._ledger, self._agent = settings, home, ledger, agent

    async def choose(self) -> ModelChoice:
        """The model in force: configured, else by key, else a local server that runs, else the embedded one."""
        raise NotImplementedError

    def request(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Stream one call. Ends with `Completed`, or raises one of the provider errors of `core.errors`."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close connections and stop the embedded engine."""
