"""Tools that tidy facts: a plan, its application as one change, and undo."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, get_args

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.contract import KnownFact, TidyAction
from annabelle.core.result_text import for_model
from annabelle.core.trust import FactCategory, Trust
from annabelle.servers.kit import Result, current_call, deferred_module, tool
from annabelle.servers.memory.arguments import Agent, Label, RowId, lowest_trust, resolve_owner
from annabelle.servers.memory.lazy_memory import MemoryTools

if TYPE_CHECKING:
    from annabelle.servers.memory import tidy_changes
    from annabelle.store.memory import fact_history
else:
    tidy_changes = deferred_module("annabelle.servers.memory.tidy_changes")
    fact_history = deferred_module("annabelle.store.memory.fact_history")


MAX_FACTS = 200
MAX_ACTIONS = 500


class TidyPlanResult(Result):
    """The facts there are, the least lately renewed first, and what the rules would do with them."""

    facts: list[KnownFact]
    actions: list[TidyAction]
    trust: Trust

    def to_text(self) -> str:
        return f"{len(self.facts)} facts, {len(self.actions)} proposed changes."


class TidyApplied(Result):
    """What was done, to be undone in one piece."""

    change_id: int | None
    retired: int
    made: int
    retired_ids: list[int]
    made_ids: list[int]
    refused: list[str] = Field(description="Always empty: a plan is done whole or not at all")

    def to_text(self) -> str:
        if self.change_id is None:
            return "There was nothing to do."
        done = f"{for_model(f'Change {self.change_id}: ')}{self.retired} facts retired, {self.made} made of them."
        return f"{done}{for_model(' undo_change undoes it.')}"


class TidyChangeShown(BaseModel):
    """A change of many facts."""

    model_config = ConfigDict(frozen=True)

    id: int
    summary: str
    made_at: datetime
    undone_at: datetime | None
    retired_ids: list[int]
    made_ids: list[int]

    def to_line(self) -> str:
        undone = f", undone {self.undone_at:%Y-%m-%d %H:%M}" if self.undone_at else ""
        counts = f"{len(self.retired_ids)} retired, {len(self.made_ids)} made"
        return f"{for_model(f'{self.id} ')}[{self.made_at:%Y-%m-%d %H:%M}{undone}] {self.summary} ({counts})"


class TidyChangeList(Result):
    """Changes, the newest first."""

    changes: list[TidyChangeShown]
    trust: Trust = "trusted"

    def to_text(self) -> str:
        return "\n".join(change.to_line() for change in self.changes) or "Nothing was tidied yet."


class UndoResult(Result):
    """What is as it was before."""

    change_id: int
    restored_ids: list[int]
    retired_ids: list[int]

    def to_text(self) -> str:
        return (
            f"{for_model(f'Change {self.change_id}', 'The change')} is undone: "
            f"{len(self.restored_ids)} facts are back, "
            f"{len(self.retired_ids)} that were made of them are history."
        )


class TidyTools(MemoryTools):
    @tool(read_only=True, destructive=False, idempotent=True, open_world=False, audience="hub")
    async def tidy_plan(
        self,
        category: Annotated[FactCategory | None, Field(description="Only facts of this category")] = None,
        max_facts_per_category: Annotated[
            int, Field(ge=2, le=MAX_FACTS, description="At most so many of each category")
        ] = 100,
        agent_id: Agent = None,
    ) -> TidyPlanResult:
        """Propose how facts might be merged or deleted, by rules alone. Nothing is changed."""
        owner = resolve_owner(current_call(), agent_id)
        memory = await self._memory.get()
        wanted: list[FactCategory] = [category] if category else list(get_args(FactCategory))
        found = await tidy_changes.plan_tidy(memory, owner, wanted, max_facts_per_category)
        known = [
            KnownFact(
                fact_id=fact.id,
                fact=fact.fact,
                category=fact.category,
                confidence=fact.confidence,
                trust=fact.trust,
                updated_at=fact.updated_at,
            )
            for fact in found.facts
        ]
        return TidyPlanResult(facts=known, actions=found.actions, trust=lowest_trust(*(fact.trust for fact in known)))

    @tool(read_only=False, destructive=False, idempotent=False, open_world=False, audience="hub")
    async def apply_tidy(
        self,
        actions: Annotated[
            list[TidyAction], Field(max_length=MAX_ACTIONS, description="What to do, whole or not at all")
        ],
        summary: Annotated[Label, Field(description="What was done in a few words")] = "",
        planned_by: Annotated[Label, Field(description="Who planned it: model, rules or you")] = "",
        agent_id: Agent = None,
    ) -> TidyApplied:
        """Merge, update and delete facts in one piece. A plan that names a fact that is not current, or not this
        memory's, is refused whole. What is retired can be brought back with undo_change."""
        owner = resolve_owner(current_call(), agent_id)
        if not actions:
            return TidyApplied(change_id=None, retired=0, made=0, retired_ids=[], made_ids=[], refused=[])
        memory = await self._memory.get()
        change = await tidy_changes.apply_tidy(memory, owner, actions, summary, planned_by)
        return TidyApplied(
            change_id=change.id,
            retired=len(change.retired),
            made=len(change.made),
            retired_ids=change.retired,
            made_ids=change.made,
            refused=[],
        )

    @tool(read_only=False, destructive=False, idempotent=False, open_world=False, audience="people")
    async def undo_change(
        self,
        change_id: Annotated[RowId | None, Field(description="The change to undo; the latest if left out")] = None,
        agent_id: Agent = None,
    ) -> UndoResult:
        """Undo a change of many facts: what it retired is current again, what it made is history. Refused when one of
        these facts was changed since."""
        owner = resolve_owner(current_call(), agent_id)
        memory = await self._memory.get()
        change = await tidy_changes.undo_tidy(memory, owner, change_id)
        return UndoResult(change_id=change.id, restored_ids=change.retired, retired_ids=change.made)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False, audience="people")
    async def list_changes(
        self,
        limit: Annotated[int, Field(ge=1, le=100, description="At most so many")] = 20,
        agent_id: Agent = None,
    ) -> TidyChangeList:
        """List the changes made by tidying, the newest first."""
        owner = resolve_owner(current_call(), agent_id)
        found = await self._read(lambda c: fact_history.list_changes(c, owner, limit))
        changes = [
            TidyChangeShown.model_validate({**asdict(one), "retired_ids": one.retired, "made_ids": one.made})
            for one in found
        ]
        return TidyChangeList(changes=changes)
