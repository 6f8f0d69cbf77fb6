"""Reviews a model's response before the loop goes on with it: repairs it, recovers leaked calls and checks its
claims.
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
from annabelle.llm.types import FROM_MEMORY
from annabelle.thinker.compression.message_text import response_text, result_text
from annabelle.thinker.loop import claims
from annabelle.thinker.loop.action_log import tools_used_earlier
from annabelle.thinker.loop.claims import Claim
from annabelle.thinker.loop.deps import ThinkerDeps, TurnScope
from annabelle.thinker.loop.leaked_calls import NOTHING_LEFT, recover_calls
from annabelle.thinker.loop.turn_progress import TurnProgress
from annabelle.thinker.selection.selection import ToolSelection

SecondTry = Literal["force", "note"]
"""How a draft is given a second chance: with a tool demanded, or with a note on what is not so."""

UNNAMED_TOOL = "unnamed_tool"
MEMORY_NOTE = "(The small packaged model says this from memory. It may be wrong.)"


@dataclass(frozen=True, slots=True)
class ResponseReview:
    """What is made of one response. `text` is what the person reads when the turn ends with it."""

    text: str = ""
    recovered: bool = False
    again: SecondTry | None = None
    reminder: str = ""

    def to_json(self) -> JsonObject:
        return {"text": self.text, "recovered": self.recovered, "again": self.again, "reminder": self.reminder}

    @classmethod
    def from_json(cls, recorded: JsonObject) -> ResponseReview:
        again = recorded.get("again")
        return cls(
            text=str(recorded.get("text", "")),
            recovered=recorded.get("recovered") is True,
            again=again if again in ("force", "note") else None,
            reminder=str(recorded.get("reminder", "")),
        )


class ResponseReviewer:
    """Reads the responses of one turn."""

    def __init__(self, deps: ThinkerDeps, scope: TurnScope, progress: TurnProgress) -> None:
        self._deps, self._scope, self._progress = deps, scope, progress
        self._asked = user_text_of(scope)
        self._earlier = tools_used_earlier(scope.prompt.history)

    def review(
        self, response: ModelResponse, selection: ToolSelection, *, tools: bool, trained: bool = False
    ) -> tuple[ModelResponse, ResponseReview]:
        """The response as the conversation keeps it, and what follows from it. `tools`: whether it could call any;
        `trained`: the packaged mind wrote it, which makes nothing of a second try."""
        response = _repair_calls(response)
        text = response_text(response)
        called = any(isinstance(part, ToolCallPart) for part in response.parts)
        known = {tool.name: tool for tool in selection.tools} if tools and not called else {}
        found = recover_calls(text, known, self._asked, self._texts_read())
        if found.calls:
            calls = [ToolCallPart(call.name, call.arguments, new_id("call")) for call in found.calls]
            self._deps.trace.write("tool.recovered", {"tools": [call.name for call in found.calls]})
            return replace_text(response, found.text, calls), ResponseReview(found.text, recovered=True)
        if called:
            said = "" if found.text == NOTHING_LEFT else selection.name_in_words(found.text, self._asked)
            return (response if said == text else replace_text(response, said)), ResponseReview(said)
        if found.text != text:
            response = replace_text(response, found.text)
        review = self._review_final(selection.name_in_words(found.text, self._asked), selection, tools=tools)
        return response, ResponseReview(self._mark_memory(response, review.text, selection)) if trained else review

    def correct_sent_text(self, text: str) -> str:
        """What must be added to a text that went out already; empty when it claims no more than was done."""
        missing = claims.find_unsupported(claims.check_claims(text, self._asked, self._progress.actions, self._earlier))
        return claims.format_correction(missing) if missing else ""

    def _texts_read(self) -> list[str]:
        """What tools returned, as far as the model has it before its eyes."""
        messages = (*self._scope.prompt.history, *self._progress.messages)
        parts = (part for message in messages for part in message.parts)
        return [result_text(part) for part in parts if isinstance(part, ToolReturnPart)]

    def _review_final(self, text: str, selection: ToolSelection, *, tools: bool) -> ResponseReview:
        """An answer that would end the turn, held against what was done."""
        actions = self._progress.actions
        checked = claims.check_claims(text, self._asked, actions, self._earlier)
        missing = claims.find_unsupported(checked)
        idle = self._progress.tool_calls == 0
        refused = not missing and idle and claims.is_needless_refusal(text, selection.names())
        again = self._choose_second_try(missing, selection, refused=refused, tools=tools)
        if checked or refused:
            rows = [{"kind": one.claim.kind, "backed_by": one.backed_by} for one in checked]
            self._deps.trace.write("claims.checked", {"claims": rows, "refused": refused, "again": again})
        honest = self._honest_text(text, missing, replace_it=idle and not selection.small_talk)
        return ResponseReview(honest, again=again, reminder=claims.format_reminder(missing) if again else "")

    def _mark_memory(self, response: ModelResponse, text: str, selection: ToolSelection) -> str:
        """What the packaged mind says by itself is marked, but for talk and questions."""
        texts = [part for part in response.parts if isinstance(part, TextPart)]
        by_itself = any((part.provider_details or {}).get(FROM_MEMORY) for part in texts)
        return f"{text}\n\n{MEMORY_NOTE}" if by_itself and not (selection.small_talk or text.endswith("?")) else text

    def _choose_second_try(
        self, missing: Sequence[Claim], selection: ToolSelection, *, refused: bool, tools: bool
    ) -> SecondTry | None:
        if self._progress.second_chance or not (missing or refused):
            return None
        if self._progress.tool_calls or any(claim.of_the_past for claim in missing):
            # To demand a call here might do a thing twice.
            return "note"
        return "force" if tools and selection.tools and not selection.small_talk else None

    def _honest_text(self, text: str, missing: Sequence[Claim], *, replace_it: bool) -> str:
        if missing and replace_it and not any(claim.of_the_past for claim in missing):
            return claims.format_failure(missing)
        notes = [
            claims.format_correction(missing) if missing else "",
            claims.format_doubt(text, self._progress.actions),
        ]
        return "\n\n".join(part for part in (text, *notes) if part)


def user_text_of(scope: TurnScope) -> str:
    """The person's own words of this turn."""
    parts = [part.content for part in scope.prompt.user.parts if isinstance(part, UserPromptPart)]
    return "\n".join(part for part in parts if isinstance(part, str))


def replace_text(response: ModelResponse, text: str, calls: Sequence[ToolCallPart] = ()) -> ModelResponse:
    """The same response with another text, and with calls that were not in it."""
    kept: list[ModelResponsePart] = [part for part in response.parts if not isinstance(part, TextPart)]
    place = next((n for n, part in enumerate(kept) if isinstance(part, ToolCallPart)), len(kept))
    said: list[ModelResponsePart] = [TextPart(content=text)] if text else []
    return replace(response, parts=[*kept[:place], *said, *kept[place:], *calls])


def _repair_calls(response: ModelResponse) -> ModelResponse:
    """Every call with a name and an id of its own: a conversation without them is refused by providers."""
    seen: set[str] = set()
    parts: list[ModelResponsePart] = []
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            name = part.tool_name.strip() or UNNAMED_TOOL
            number = part.tool_call_id if part.tool_call_id and part.tool_call_id not in seen else new_id("call")
            seen.add(number)
            if (name, number) != (part.tool_name, part.tool_call_id):
                part = replace(part, tool_name=name, tool_call_id=number)
        parts.append(part)
    return replace(response, parts=parts)
