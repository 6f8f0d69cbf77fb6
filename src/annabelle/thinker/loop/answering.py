"""Reads a model's response before the loop goes on with it: repairs it, recovers leaked calls, checks its claims.

This happens inside the model step and is recorded with it, so that a replay goes the same way whatever tools there are
by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic_ai.messages import (
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from annabelle.core.ids import new_id
from annabelle.core.tools import JsonObject
from annabelle.thinker.compress.texts import result_text
from annabelle.thinker.loop import guard
from annabelle.thinker.loop.bench import Workbench
from annabelle.thinker.loop.calls import text_of
from annabelle.thinker.loop.claims import Claim
from annabelle.thinker.loop.deeds import earlier_tools
from annabelle.thinker.loop.leaks import NOTHING_LEFT, recover
from annabelle.thinker.loop.progress import Progress
from annabelle.thinker.loop.scope import TurnScope
from annabelle.thinker.select.selector import Selection

Again = Literal["force", "note"]
"""How a draft is given a second chance: with a tool demanded, or with a note on what is not so."""

NAMELESS = "unnamed_tool"


@dataclass(frozen=True, slots=True)
class Review:
    """What is made of one response. `text` is what the person reads when the turn ends with it."""

    text: str = ""
    recovered: bool = False
    again: Again | None = None
    reminder: str = ""

    def to_json(self) -> JsonObject:
        return {"text": self.text, "recovered": self.recovered, "again": self.again, "reminder": self.reminder}

    @classmethod
    def from_json(cls, recorded: JsonObject) -> Review:
        again = recorded.get("again")
        return cls(
            text=str(recorded.get("text", "")),
            recovered=recorded.get("recovered") is True,
            again=again if again in ("force", "note") else None,
            reminder=str(recorded.get("reminder", "")),
        )


class Reviewer:
    """Reads the responses of one turn."""

    def __init__(self, bench: Workbench, scope: TurnScope, progress: Progress) -> None:
        self._bench, self._scope, self._progress = bench, scope, progress
        self._asked = asked_in(scope)
        self._earlier = earlier_tools(scope.prompt.history)

    def review(self, response: ModelResponse, selection: Selection, *, tools: bool) -> tuple[ModelResponse, Review]:
        """The response as the conversation keeps it, and what follows from it. `tools`: whether it could call any."""
        response = _repaired(response)
        text = text_of(response)
        called = any(isinstance(part, ToolCallPart) for part in response.parts)
        known = {tool.name: tool for tool in selection.tools} if tools and not called else {}
        found = recover(text, known, self._asked, self._read())
        if found.calls:
            calls = [ToolCallPart(call.name, call.arguments, new_id("call")) for call in found.calls]
            self._bench.trace.write("tool.recovered", {"tools": [call.name for call in found.calls]})
            return with_text(response, found.text, calls), Review(found.text, recovered=True)
        if called:
            said = "" if found.text == NOTHING_LEFT else found.text
            return (response if said == text else with_text(response, said)), Review(said)
        if found.text != text:
            response = with_text(response, found.text)
        return response, self._final(found.text, selection, tools=tools)

    def sent(self, text: str) -> str:
        """What must be added to a text that went out already; empty when it claims no more than was done."""
        missing = guard.unbacked(guard.check(text, self._asked, self._progress.deeds, self._earlier))
        return guard.correction(missing) if missing else ""

    def _read(self) -> list[str]:
        """What tools returned, as far as the model has it before its eyes."""
        messages = (*self._scope.prompt.history, *self._progress.messages)
        parts = (part for message in messages for part in message.parts)
        return [result_text(part) for part in parts if isinstance(part, ToolReturnPart)]

    def _final(self, text: str, selection: Selection, *, tools: bool) -> Review:
        """An answer that would end the turn, held against what was done."""
        deeds = self._progress.deeds
        checked = guard.check(text, self._asked, deeds, self._earlier)
        missing = guard.unbacked(checked)
        idle = self._progress.tool_calls == 0
        refused = not missing and idle and guard.refuses(text, selection.names())
        again = self._again(missing, selection, refused=refused, tools=tools)
        if checked or refused:
            rows = [{"kind": one.claim.kind, "backed_by": one.backed_by} for one in checked]
            self._bench.trace.write("claims.checked", {"claims": rows, "refused": refused, "again": again})
        honest = self._honest(text, missing, replace_it=idle and not selection.small_talk)
        return Review(honest, again=again, reminder=guard.reminder(missing) if again else "")

    def _again(self, missing: Sequence[Claim], selection: Selection, *, refused: bool, tools: bool) -> Again | None:
        if self._progress.second_chance or not (missing or refused):
            return None
        if self._progress.tool_calls or any(claim.of_the_past for claim in missing):
            # To demand a call here might do a thing twice.
            return "note"
        return "force" if tools and selection.tools and not selection.small_talk else None

    def _honest(self, text: str, missing: Sequence[Claim], *, replace_it: bool) -> str:
        if missing and replace_it and not any(claim.of_the_past for claim in missing):
            return guard.failure(missing)
        notes = [guard.correction(missing) if missing else "", guard.doubt(text, self._progress.deeds)]
        return "\n\n".join(part for part in (text, *notes) if part)


def asked_in(scope: TurnScope) -> str:
    """The person's own words of this turn."""
    parts = [part.content for part in scope.prompt.user.parts if isinstance(part, UserPromptPart)]
    return "\n".join(part for part in parts if isinstance(part, str))


def with_text(response: ModelResponse, text: str, calls: Sequence[ToolCallPart] = ()) -> ModelResponse:
    """The same response with another text, and with calls that were not in it."""
    kept: list[ModelResponsePart] = [part for part in response.parts if not isinstance(part, TextPart)]
    place = next((n for n, part in enumerate(kept) if isinstance(part, ToolCallPart)), len(kept))
    said: list[ModelResponsePart] = [TextPart(content=text)] if text else []
    return replace(response, parts=[*kept[:place], *said, *kept[place:], *calls])


def _repaired(response: ModelResponse) -> ModelResponse:
    """Every call with a name and an id of its own: a conversation without them is refused by providers."""
    seen: set[str] = set()
    parts: list[ModelResponsePart] = []
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            name = part.tool_name.strip() or NAMELESS
            number = part.tool_call_id if part.tool_call_id and part.tool_call_id not in seen else new_id("call")
            seen.add(number)
            if (name, number) != (part.tool_name, part.tool_call_id):
                part = replace(part, tool_name=name, tool_call_id=number)
        parts.append(part)
    return replace(response, parts=parts)
