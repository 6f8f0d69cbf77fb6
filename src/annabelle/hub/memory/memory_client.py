"""Calls the memory server's tools, and resolves whose memory a call means (I-30)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from annabelle.core.contract import KnownFact, LearntFact, PastTurn, TidyAction
from annabelle.core.errors import AnnabelleError, ErrorBody, NotAllowed, SwitchedOff, Unavailable, UnknownTool
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.core.trust import FactCategory, Provenance
from annabelle.durable.steps import rebuild_error
from annabelle.hub.agents.registry import AgentRegistry

M = TypeVar("M", bound=BaseModel)
LEARNT = "learnt from a conversation"


class MemoryToolCaller(Protocol):
    async def call(self, name: str, arguments: JsonObject, context: CallContext) -> ToolResult: ...


@dataclass(frozen=True, slots=True)
class MemoryOwner:
    user_id: str
    agent_id: str
    thread_id: str | None = None
    message_id: str | None = None
    channel: str | None = None
    chat_id: str | None = None
    trace_id: str | None = None

    def context(self, provenance: Provenance | None = None) -> CallContext:
        return CallContext(caller="hub", provenance=provenance or Provenance(), **asdict(self))


@dataclass(frozen=True, slots=True)
class DeliveredTurn:
    said: str
    answered: str
    speaker: str
    said_at: datetime
    tools: tuple[str, ...]
    provenance: Provenance


class _MemoryAnswer(BaseModel):
    """The part of a tool's answer the hub works with."""

    model_config = ConfigDict(extra="ignore")


class _TurnsAnswer(_MemoryAnswer):
    turns: tuple[PastTurn, ...]


class _FactText(_MemoryAnswer):
    fact: str


class _FactsAnswer(_MemoryAnswer):
    facts: tuple[_FactText, ...]


class StoreFactAnswer(_MemoryAnswer):
    fact_id: int
    status: str


class TidyPlanAnswer(_MemoryAnswer):
    """The facts there are, and what the rules would do with them."""

    facts: tuple[KnownFact, ...]
    actions: tuple[TidyAction, ...] = ()


class TidyOutcome(_MemoryAnswer):
    change_id: int | None = None
    retired: int = 0
    made: int = 0
    refused: tuple[str, ...] = Field(default=(), description="Actions that were not done, and why")


class MemoryClient:
    """Calls raise on failure. Only Unavailable and StorageTrouble are worth a retry."""

    def __init__(self, tools: MemoryToolCaller) -> None:
        self._tools = tools

    async def store_turn(self, owned: MemoryOwner, turn: DeliveredTurn) -> None:
        """Store a delivered turn. The same message again changes nothing."""
        await self._call(
            "store_conversation",
            {
                "session_id": owned.thread_id,
                "user_message": turn.said,
                "agent_response": turn.answered,
                "tools": list(turn.tools),
                "said_at": turn.said_at.isoformat(),
                "speaker": turn.speaker,
            },
            owned.context(turn.provenance),
        )

    async def list_unread(self, owned: MemoryOwner, limit: int, *, everywhere: bool = False) -> tuple[PastTurn, ...]:
        """The last turns without extracted facts, oldest first, of the thread or `everywhere`."""
        asked: JsonObject = {"limit": limit}
        if not everywhere:
            asked["session_id"] = owned.thread_id
        return _parse_answer(_TurnsAnswer, await self._call("list_unextracted", asked, owned.context())).turns

    async def list_known_facts(self, owned: MemoryOwner, limit: int) -> tuple[str, ...]:
        """Known facts, newest first."""
        found = _parse_answer(_FactsAnswer, await self._call("list_facts", {"limit": limit}, owned.context()))
        return tuple(one.fact for one in found.facts)

    async def store_fact(self, owned: MemoryOwner, learnt: LearntFact, message_id: str | None) -> StoreFactAnswer:
        """Store a fact with the quote it came from. The quote decides its trust, not the caller."""
        origin: JsonObject = {
            "kind": "conversation",
            "conversation_id": learnt.conversation_id,
            "message_id": message_id,
            "thread_id": owned.thread_id,
            "quote": learnt.quote,
        }
        arguments: JsonObject = {
            "fact": learnt.fact,
            "category": learnt.category,
            "source": LEARNT,
            "confidence": learnt.confidence,
            "origin": {key: value for key, value in origin.items() if value is not None},
        }
        answer = await self._call("store_fact", arguments, owned.context(Provenance(trust=learnt.trust)))
        return _parse_answer(StoreFactAnswer, answer)

    async def mark_read(self, owned: MemoryOwner, conversation_ids: Sequence[int]) -> None:
        await self._call("mark_extracted", {"conversation_ids": list(conversation_ids)}, owned.context())

    async def plan_tidy(self, owned: MemoryOwner, category: FactCategory | None, most: int) -> TidyPlanAnswer:
        """The current facts, at most `most` per category, and the actions that rules propose."""
        asked: JsonObject = {"max_facts_per_category": most}
        if category is not None:
            asked["category"] = category
        return _parse_answer(TidyPlanAnswer, await self._call("tidy_plan", asked, owned.context()))

    async def apply_tidy(self, owned: MemoryOwner, actions: Sequence[TidyAction], planned_by: str) -> TidyOutcome:
        """Apply actions as one change, so that one undo reverts all of them."""
        asked: JsonObject = {
            "actions": [action.model_dump(mode="json", exclude_none=True) for action in actions],
            "planned_by": planned_by,
        }
        return _parse_answer(TidyOutcome, await self._call("apply_tidy", asked, owned.context()))

    async def _call(self, name: str, arguments: JsonObject, context: CallContext) -> JsonObject:
        try:
            result = await self._tools.call(f"memory_{name}", arguments, context)
        except SwitchedOff as error:
            raise Unavailable(error.message, hint=error.hint) from error
        except UnknownTool as error:
            raise Unavailable(
                "The memory does not run.", hint="annabelle status says why; it is tried again by itself."
            ) from error
        if result.is_error:
            raise rebuild_error(result.error or ErrorBody(code="tool_failed", message=result.text))
        return result.structured or {}


def _parse_answer(model: type[M], answer: JsonObject) -> M:
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        raise AnnabelleError(f"The memory's answer can not be read as {model.__name__}.") from error


_LEGACY_AGENT_NAME = "main"  # the name that skills of older systems use for their agent


def resolve_memory_owner(context: CallContext, asked: str | None, agents: AgentRegistry) -> MemoryOwner:
    """The memory a call means. The user is always the caller, never an argument."""
    own = context.agent_id or agents.config.default.agent_id
    agent_id = own if asked in (None, "", _LEGACY_AGENT_NAME, own) else str(asked)
    if agent_id != own:
        if context.caller == "agent":
            raise NotAllowed(
                f"{own} may not touch the memory of {agent_id}.", hint="Leave agent_id out.", field="agent_id"
            )
        agents.agent(agent_id)  # raises NotFound for an unknown agent
    return MemoryOwner(
        user_id=context.user_id,
        agent_id=agent_id,
        message_id=context.message_id,
        thread_id=context.thread_id,
        trace_id=context.trace_id,
    )
