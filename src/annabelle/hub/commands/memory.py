"""`/memory`: what is remembered, found by its words and without a model."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from annabelle.core.errors import Unavailable
from annabelle.core.text import escape_invisible, fold_for_search
from annabelle.core.tools import CallContext, JsonObject
from annabelle.core.trace import current_trace
from annabelle.hub.commands.command import Command, CommandAnswer, CommandCall, CommandInfo

_SHOWN: Final = 10
_PAGE: Final = 200
_PAGES: Final = 10
_LIST_FACTS: Final = "memory_list_facts"


class _FactLine(BaseModel):
    model_config = ConfigDict(extra="ignore")

    fact: str
    category: str


class _FactPage(BaseModel):
    model_config = ConfigDict(extra="ignore")

    facts: tuple[_FactLine, ...]
    next_before_id: int | None = None


class MemoryCommand(Command):
    info = CommandInfo(
        name="memory",
        usage="[words]",
        summary="What is remembered about you: the newest facts, or those with these words.",
        examples=("/memory", "/memory birthday"),
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        wanted = [fold_for_search(word) for word in call.words]
        found: list[str] = []
        arguments: JsonObject = {"limit": _PAGE}
        for _ in range(_PAGES if wanted else 1):
            page = await self._list(call, arguments)
            lines = [f"{escape_invisible(one.fact)} ({one.category})" for one in page.facts]
            found += [line for line in lines if all(word in fold_for_search(line) for word in wanted)]
            if len(found) > _SHOWN or page.next_before_id is None:
                break
            arguments = {"limit": _PAGE, "before_id": page.next_before_id}
        if not found:
            return CommandAnswer("No fact has these words." if wanted else "Nothing is remembered yet.")
        more = "" if len(found) <= _SHOWN else "\nThere is more. Add words to narrow it down."
        return CommandAnswer("\n".join(found[:_SHOWN]) + more)

    async def _list(self, call: CommandCall, arguments: JsonObject) -> _FactPage:
        """A page of the person's own facts, newest first."""
        context = CallContext(caller="hub", agent_id=call.agent_id, user_id=call.user_id, trace_id=current_trace())
        result = await self.deps.status.toolbox.call(_LIST_FACTS, arguments, context)
        try:
            return _FactPage.model_validate(result.structured)
        except ValidationError as error:
            raise Unavailable(f"The memory did not answer: {result.for_person}") from error
