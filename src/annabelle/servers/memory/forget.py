"""Tools the hub calls when a person wants something forgotten (TRU-09)."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from annabelle.core.secrets.forget_mask import ForgetMatcher
from annabelle.core.trust import Trust
from annabelle.servers.kit import Call, Result, current_call, deferred_module, tool
from annabelle.servers.memory.arguments import RowId, resolve_owner
from annabelle.servers.memory.lazy_memory import MemoryTools

if TYPE_CHECKING:
    from annabelle.embeddings import cache
    from annabelle.store import text_removal
    from annabelle.store.memory import text_removal as memory_text_removal
else:
    cache = deferred_module("annabelle.embeddings.cache")
    text_removal = deferred_module("annabelle.store.text_removal")
    memory_text_removal = deferred_module("annabelle.store.memory.text_removal")


_SHOWN = 50
Texts = Annotated[
    list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=100, description="What to forget")
]


class ForgetMatchedFact(Result):
    id: int
    agent_id: str
    fact: str
    current: bool


class ForgetMatches(Result):
    facts: list[ForgetMatchedFact] = Field(description="The first of them")
    counts: dict[str, int] = Field(description="Rows that hold the text, by table")
    trust: Trust = "untrusted"

    def to_text(self) -> str:
        return f"{sum(self.counts.values())} rows."


class ForgetFactTexts(Result):
    texts: list[str]
    trust: Trust = "untrusted"

    def to_text(self) -> str:
        return f"{len(self.texts)} texts."


class ForgetTools(MemoryTools):
    """For the hub alone. What they are given is never written down, and never part of an error."""

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False, audience="hub")
    async def forget_matches(self, texts: Texts) -> ForgetMatches:
        """Count what a person's agents remember that holds one of these texts."""
        looking = _sweep(current_call(), texts, apply=False)
        return _to_matches(await self._read(lambda connection: memory_text_removal.remove_text(connection, looking)))

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False, audience="hub")
    async def forget_fact_texts(
        self,
        fact_id: Annotated[RowId, Field(description="The fact")],
        with_source: Annotated[bool, Field(description="Also the words of the conversation it came from")] = False,
    ) -> ForgetFactTexts:
        """Say which texts to forget for a fact: its own, and of the facts it took the place of."""
        memory, user_id = await self._memory.get(), resolve_owner(current_call()).user_id
        return ForgetFactTexts(
            texts=await memory.database.read(
                lambda connection: memory_text_removal.list_fact_texts(
                    connection, user_id, fact_id, with_source=with_source
                )
            )
        )

    @tool(read_only=False, destructive=True, idempotent=True, open_world=False, audience="hub")
    async def forget_text(self, texts: Texts) -> ForgetMatches:
        """Forget these texts: rows, words in the index, vectors, cached vectors, free pages and journal."""
        memory = await self._memory.get()
        applying = _sweep(current_call(), texts, apply=True)
        found = await memory.database.write(lambda connection: memory_text_removal.remove_text(connection, applying))
        await memory.database.vacuum(await memory.database.read(memory_text_removal.list_tables))
        # The cache does not know which of its texts hold this one. It fills again.
        await self._memory.replace(self._drop_cache)
        return _to_matches(found)

    async def _drop_cache(self) -> None:
        await asyncio.to_thread(cache.clear_cache, self._memory.config.embedding_cache)


def _sweep(call: Call, texts: list[str], *, apply: bool) -> text_removal.TextRemoval:
    return text_removal.TextRemoval(ForgetMatcher(texts), apply, resolve_owner(call).user_id)


def _to_matches(found: memory_text_removal.RemovedFromMemory) -> ForgetMatches:
    facts = [ForgetMatchedFact.model_validate(asdict(fact)) for fact in found.facts[:_SHOWN]]
    return ForgetMatches(facts=facts, counts=found.counts)
