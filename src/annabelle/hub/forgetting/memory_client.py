"""Calls the memory server's tools for forgetting."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import (
    AnnabelleError,
    InvalidArguments,
    NotFound,
    StorageTrouble,
    SwitchedOff,
    Unavailable,
    UnknownTool,
)
from annabelle.core.tools import CallContext, JsonObject
from annabelle.toolbox.facade import Toolbox

M = TypeVar("M", bound=BaseModel)
_KNOWN = {kind.code: kind for kind in (InvalidArguments, NotFound, Unavailable, StorageTrouble)}
_CLOSE = 5


class MemoryFactMatch(BaseModel):
    """A fact that holds the text."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: int
    agent_id: str = ""
    fact: str
    current: bool = True


class MemoryMatches(BaseModel):
    """What of the memory holds the text."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    facts: tuple[MemoryFactMatch, ...] = ()
    counts: dict[str, int] = Field(default_factory=dict)


class _FactTexts(BaseModel):
    texts: tuple[str, ...]


class _NearFacts(BaseModel):
    facts: tuple[MemoryFactMatch, ...] = ()


class ForgetMemoryClient:
    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    async def find_matches(self, texts: tuple[str, ...], user_id: str, agent_id: str) -> MemoryMatches:
        return await self._ask(MemoryMatches, "forget_matches", {"texts": list(texts)}, user_id, agent_id)

    async def forget(self, texts: tuple[str, ...], user_id: str, agent_id: str) -> MemoryMatches:
        return await self._ask(MemoryMatches, "forget_text", {"texts": list(texts)}, user_id, agent_id)

    async def find_fact_texts(self, fact_id: int, with_source: bool, user_id: str, agent_id: str) -> tuple[str, ...]:
        """The texts to forget so that a fact is gone."""
        asked: JsonObject = {"fact_id": fact_id, "with_source": with_source}
        return (await self._ask(_FactTexts, "forget_fact_texts", asked, user_id, agent_id)).texts

    async def find_near_facts(self, text: str, user_id: str, agent_id: str) -> tuple[MemoryFactMatch, ...]:
        """Facts with a similar meaning. Empty if the search fails."""
        asked: JsonObject = {"query": text, "limit": _CLOSE, "include_conversations": False}
        try:
            return (await self._ask(_NearFacts, "retrieve_memories", asked, user_id, agent_id)).facts[:_CLOSE]
        except AnnabelleError:
            return ()

    async def _ask(self, model: type[M], tool: str, arguments: JsonObject, user_id: str, agent_id: str) -> M:
        context = CallContext(caller="hub", user_id=user_id, agent_id=agent_id)
        try:
            result = await self._toolbox.call(f"memory_{tool}", arguments, context)
        except SwitchedOff as error:
            raise Unavailable(f"{error.message} Nothing was forgotten.", hint=error.hint) from error
        except UnknownTool as error:
            hint = "annabelle status says why the memory does not run."
            raise Unavailable("The memory does not run. Nothing was forgotten.", hint=hint) from error
        if result.is_error:
            body = result.error
            if body is None:
                raise Unavailable("The memory could not do it.", hint="Look into its log: annabelle logs memory")
            raise _KNOWN.get(body.code, AnnabelleError)(body.message, hint=body.hint)
        return model.model_validate(result.structured or {})
