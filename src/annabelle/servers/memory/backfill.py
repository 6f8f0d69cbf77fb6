"""Vectors for what was stored while there were none to be had, or by another model."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from annabelle.core.memory import Trust
from annabelle.servers.kit import Result, current_call, tool
from annabelle.servers.memory.opening import Opening
from annabelle.servers.memory.ownership import owner_of


class Backfilled(Result):
    done: int = Field(description="Rows that got a vector now")
    remaining: int
    total: int = Field(description="Rows that can be searched")
    model: str
    trust: Trust = "trusted"

    def text(self) -> str:
        left = f"{self.remaining} of {self.total} still lack one" if self.remaining else f"all {self.total} have one"
        return f"{self.done} rows got a vector of {self.model}; {left}."


class BackfillTools:
    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def backfill_embeddings(
        self,
        agent_id: Annotated[str | None, Field(description="Whose memory; by default the calling agent's own")] = None,
        batch_size: Annotated[int, Field(ge=1, le=200, description="How many rows at most")] = 50,
    ) -> Backfilled:
        """Make the missing vectors of one batch of facts and conversations, so that they are found by meaning too.
        This also happens by itself in the background; call it again until nothing remains."""
        owner = owner_of(current_call(), agent_id)
        library = await self._opening.library()
        done = await library.reembedding.batch(batch_size, owner)
        remaining, present = await library.reembedding.remaining(owner), await library.reembedding.present(owner)
        return Backfilled(done=done, remaining=remaining, total=remaining + present, model=str(library.embedder.model))
