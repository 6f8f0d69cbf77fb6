"""What the hub asks of the memory when a person wants something forgotten (TRU-09)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from annabelle.core.memory import Trust
from annabelle.core.needle import Needle
from annabelle.servers.kit import Call, Result, current_call, deferred_module, tool
from annabelle.servers.memory.opening import Opening
from annabelle.servers.memory.ownership import owner_of
from annabelle.servers.memory.wording import RowId

if TYPE_CHECKING:
    from annabelle.embeddings import cache_folder
    from annabelle.store import sweep
    from annabelle.store.memory import forgetting
else:
    cache_folder = deferred_module("annabelle.embeddings.cache_folder")
    sweep = deferred_module("annabelle.store.sweep")
    forgetting = deferred_module("annabelle.store.memory.forgetting")

_SHOWN = 50
Texts = Annotated[
    list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=100, description="What to forget")
]


class MatchedFact(Result):
    id: int
    agent_id: str
    fact: str
    current: bool


class Matches(Result):
    facts: list[MatchedFact] = Field(description="The first of them")
    counts: dict[str, int] = Field(description="Rows that hold the text, by table")
    trust: Trust = "untrusted"

    def text(self) -> str:
        return f"{sum(self.counts.values())} rows."


class FactTexts(Result):
    texts: list[str]
    trust: Trust = "untrusted"

    def text(self) -> str:
        return f"{len(self.texts)} texts."


class ForgettingTools:
    """For the hub alone. What they are given is never written down, and never part of an error."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False, audience="hub")
    async def forget_matches(self, texts: Texts) -> Matches:
        """Count what a person's agents remember that holds one of these texts."""
        library = await self._opening.library()
        looking = _sweep(current_call(), texts, apply=False)
        return _matches(await library.database.read(lambda connection: forgetting.forget(connection, looking)))

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False, audience="hub")
    async def forget_fact_texts(
        self,
        fact_id: Annotated[RowId, Field(description="The fact")],
        with_source: Annotated[bool, Field(description="Also the words of the conversation it came from")] = False,
    ) -> FactTexts:
        """Say which texts to forget for a fact: its own, and of the facts it took the place of."""
        library, user_id = await self._opening.library(), owner_of(current_call()).user_id
        return FactTexts(
            texts=await library.database.read(
                lambda connection: forgetting.texts_of(connection, user_id, fact_id, with_source=with_source)
            )
        )

    @tool(read_only=False, destructive=True, idempotent=True, open_world=False, audience="hub")
    async def forget_text(self, texts: Texts) -> Matches:
        """Forget these texts: rows, words in the index, vectors, cached vectors, free pages and journal."""
        library = await self._opening.library()
        applying = _sweep(current_call(), texts, apply=True)
        found = await library.database.write(lambda connection: forgetting.forget(connection, applying))
        await library.database.compact(await library.database.read(forgetting.tables))
        # The cache does not know which of its texts hold this one. It fills again.
        await self._opening.replace(self._drop_cache)
        return _matches(found)

    async def _drop_cache(self) -> None:
        await asyncio.to_thread(cache_folder.clear, self._opening.config.embedding_cache)


def _sweep(call: Call, texts: list[str], *, apply: bool) -> sweep.Sweep:
    return sweep.Sweep(Needle(texts), apply, owner_of(call).user_id)


def _matches(found: forgetting.Forgotten) -> Matches:
    facts = [
        MatchedFact(id=fact.id, agent_id=fact.agent_id, fact=fact.fact, current=fact.current) for fact in found.facts
    ]
    return Matches(facts=facts[:_SHOWN], counts=found.counts)
