"""One agent's mind: every part of an adopted thinker, opened together and closed together."""

from __future__ import annotations

from typing import Protocol

from annabelle.core.contract import AgentProfile
from annabelle.core.errors import Unavailable
from annabelle.embeddings import Embedder
from annabelle.llm.health import ProviderHealth
from annabelle.thinker.compress.port import Thinking
from annabelle.thinker.costs import CostMeter
from annabelle.thinker.learn.learning import Learning
from annabelle.thinker.loop.bench import Workbench
from annabelle.thinker.session.port import Sessions
from annabelle.thinker.turns import Turns


class OwnModel(Protocol):
    """What a mind asks of its model service beside answers."""

    def health(self) -> list[ProviderHealth]: ...

    async def close(self) -> None: ...


class Mind:
    """What the endpoints work on. Not ready until `open` has returned, nor after `close` has begun."""

    def __init__(self, bench: Workbench, turns: Turns, learning: Learning, model: OwnModel, embedder: Embedder) -> None:
        self._bench, self._model, self._embedder = bench, model, embedder
        self.turns, self.learning = turns, learning
        self._ready = False

    @property
    def profile(self) -> AgentProfile:
        return self._bench.profile

    @property
    def costs(self) -> CostMeter:
        return self._bench.costs

    @property
    def sessions(self) -> Sessions:
        return self._bench.sessions

    @property
    def thinking(self) -> Thinking:
        return self._bench.thinking

    @property
    def persona_source(self) -> str:
        return self._bench.context.persona_source()

    @property
    def providers(self) -> list[ProviderHealth]:
        return self._model.health()

    @property
    def running(self) -> int:
        return self.turns.running

    def require_ready(self) -> None:
        if not self._ready:
            raise Unavailable("This thinker is not ready yet.", hint="Ask again in a moment.")

    async def open(self) -> None:
        """Start the durable engine: turns an earlier process left unfinished go on from here."""
        await self._bench.engine.launch()
        await self._bench.sessions.open()
        self._ready = True

    async def close(self, grace: float) -> None:
        """Let running steps end within `grace` seconds; what is unfinished is resumed by the next process."""
        self._ready = False
        await self.turns.stop(grace)
        await self._bench.engine.close()
        await self._bench.sessions.close()
        await self._model.close()
        await self._embedder.close()
