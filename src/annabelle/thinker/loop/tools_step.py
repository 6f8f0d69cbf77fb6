"""Makes the calls of one step: together when all only read, else in order; none is left without a result."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from pydantic_ai.messages import ModelRequest, ToolCallPart, ToolReturnPart

from annabelle.core.events import EventType
from annabelle.core.tools import JsonObject, ToolResult
from annabelle.thinker.loop import limits, results
from annabelle.thinker.loop.answering import Reviewer
from annabelle.thinker.loop.bench import Workbench
from annabelle.thinker.loop.calls import PlannedCall, all_read_only
from annabelle.thinker.loop.deeds import Deed, DeedOutcome, reads_only
from annabelle.thinker.loop.outcome import Outcome
from annabelle.thinker.loop.parking import Unanswered, parked_turn
from annabelle.thinker.loop.progress import Progress
from annabelle.thinker.loop.scope import TurnScope
from annabelle.thinker.loop.tool_step import CallMade, call_tool
from annabelle.thinker.select.selector import Selection

SEARCH_TOOLS: Final = "search_tools"
SENDING_TOOLS: Final = frozenset({"send_message", "send_telegram"})
_SENT_TEXT_FIELDS: Final = ("text", "message", "content")


@dataclass(slots=True)
class _Results:
    """What came of the calls of one step: results for the model, and by its ids the questions to the person."""

    parts: list[ToolReturnPart]
    questions: dict[str, ToolResult] = field(default_factory=dict[str, ToolResult])

    def missing(self, calls: Sequence[PlannedCall]) -> list[PlannedCall]:
        known = {part.tool_call_id for part in self.parts}
        return [call for call in calls if call.model_id not in known]


class ToolsStep:
    """The tools of one turn. `selection` grows when the model looks for more of them."""

    def __init__(self, bench: Workbench, scope: TurnScope, progress: Progress, reviewer: Reviewer) -> None:
        self._bench, self._scope, self._progress, self._reviewer = bench, scope, progress, reviewer
        self._begun: set[str] = set()
        self.selection = scope.selection

    async def run(
        self, calls: list[PlannedCall], selection: Selection, answered: Sequence[ToolReturnPart] = ()
    ) -> Outcome | None:
        """Make the calls. Returns an outcome when they end the turn, or park it.

        `answered` are results that calls of the same response had before the turn was parked.
        """
        allowed = self._within_limit(calls)
        at_once = allowed[: limits.MOST_AT_ONCE]
        made = _Results(list(answered))
        try:
            if len(at_once) > 1 and all_read_only(at_once, selection):
                ended = await self._all_at_once(at_once, selection, made)
            else:
                ended = await self._in_order(at_once, selection, made)
        except BaseException:
            # Cut off here: the session must never hold a call without its result.
            self._answer(made.parts + [self._unanswered(call) for call in made.missing(calls)])
            raise
        if made.questions:
            return self._park(calls, made)
        made.parts += [results.too_many(call) for call in allowed[limits.MOST_AT_ONCE :]]
        self._answer(made.parts + [self._unanswered(call) for call in made.missing(calls)])
        if ended is not None:
            return ended
        stop = limits.after_tools(self._progress, self._scope.limits)
        if stop is None and len(allowed) < len(calls):
            stop = limits.tool_calls(self._scope.limits)
        return None if stop is None else Outcome(limits.gathered(stop, self._progress), limit=stop.limit)

    def _park(self, calls: Sequence[PlannedCall], made: _Results) -> Outcome:
        """End the turn with the question. Whatever has no result yet is made when the person has answered."""
        left = Unanswered(made.missing(calls), made.questions, made.parts)
        parked = parked_turn(self._scope.brief, self._progress, left, self.selection.names())
        self._answer(made.parts + [results.waits(call) for call in left.calls])
        return Outcome(left.text, parked=parked)

    def _answer(self, parts: list[ToolReturnPart]) -> None:
        """Put the results into the conversation, in the order of the calls."""
        response = self._progress.messages[-1]
        called = [part.tool_call_id for part in response.parts if isinstance(part, ToolCallPart)]
        place = {model_id: number for number, model_id in enumerate(called)}
        in_order = sorted(parts, key=lambda part: place.get(part.tool_call_id, len(place)))
        self._progress.messages.append(ModelRequest(parts=in_order))

    async def _all_at_once(self, calls: list[PlannedCall], selection: Selection, made: _Results) -> Outcome | None:
        found = await asyncio.gather(*(self._make(c, selection) for c in calls), return_exceptions=True)
        finished = [(call, one) for call, one in zip(calls, found, strict=True) if isinstance(one, CallMade)]
        for call, one in finished:
            self._sort(call, one.result, made)
        self._progress.seconds += max((one.seconds for _, one in finished), default=0.0)
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return None

    async def _in_order(self, calls: list[PlannedCall], selection: Selection, made: _Results) -> Outcome | None:
        for call in calls:
            if made.questions and call.problem is None:
                continue  # behind a call that waits; one with a problem is never made, so it is answered now
            one = await self._make(call, selection)
            self._progress.seconds += one.seconds
            self._sort(call, one.result, made)
            ended = None if call.model_id in made.questions else self._sent(call, one.result)
            if ended is not None:
                return ended
        return None

    def _sort(self, call: PlannedCall, result: ToolResult, made: _Results) -> None:
        if result.approval_id is None:
            made.parts.append(self._take(call, result))
        else:
            # It was not made: nothing about it is unknown, whatever happens to the turn now.
            self._begun.discard(call.call_id)
            made.questions[call.model_id] = result

    async def _make(self, call: PlannedCall, selection: Selection) -> CallMade:
        scope, step = self._scope, self._progress.step
        start: JsonObject = {"call_id": call.call_id, "name": call.name, "arguments": call.arguments}
        if call.recovered:
            start["recovered"] = True
        self._tell("tool_start", call, "start", start)
        self._begun.add(call.call_id)

        async def make() -> JsonObject:
            return (await scope.live.work(call_tool(self._bench, scope, call, selection))).to_json()

        async with scope.live.step():
            # A name of its own: calls that run at the same time are told apart by it when they are replayed.
            made = CallMade.from_json(await self._bench.engine.step(f"tool {step}:{call.index}", make))
        self._tell("tool_complete", call, "complete", results.completion(call, made.result))
        return made

    def _tell(self, type: EventType, call: PlannedCall, moment: str, data: JsonObject) -> None:
        step = self._progress.step
        self._scope.live.stream.fact(type, f"{step}:tool:{call.index}:{moment}", data, step=step)

    def _within_limit(self, calls: list[PlannedCall]) -> list[PlannedCall]:
        most = self._scope.limits.max_tool_calls
        return calls if most is None else calls[: max(0, most - self._progress.tool_calls)]

    def _take(self, call: PlannedCall, result: ToolResult) -> ToolReturnPart:
        """Count what a call did, and answer it in the conversation."""
        progress = self._progress
        progress.tool_calls += 1
        progress.mistakes = progress.mistakes + 1 if result.is_error else 0
        progress.repetition.note(call.name, call.arguments, result.text)
        if self._scope.workspace is not None:
            self._scope.workspace.observe(call.name, result)
        if result.is_error:
            unknown = results.is_unknown(result)
            self._note(call, "unknown" if unknown else "failed")
            if unknown:
                progress.unknown_outcomes.append(call.call_id)
        else:
            self._note(call, "done")
            progress.used(call.name)
            self._look_around(call, result)
            progress.last_result = result.text
        return results.for_model(call, result)

    def _note(self, call: PlannedCall, outcome: DeedOutcome) -> None:
        only_reads = reads_only(call.name, self.selection.spec(call.name))
        self._progress.deeds.append(Deed(call.name, only_reads, outcome))

    def _look_around(self, call: PlannedCall, result: ToolResult) -> None:
        """Offer what the model found with `search_tools` from the next step on."""
        if call.name == SEARCH_TOOLS and result.structured is not None:
            found = result.structured.get("tools")
            rows = cast("list[object]", found) if isinstance(found, list) else []
            names = [str(cast("JsonObject", row).get("name")) for row in rows if isinstance(row, dict)]
            self.selection = self.selection.with_found(names)

    def _unanswered(self, call: PlannedCall) -> ToolReturnPart:
        """Answers a call the turn did not wait for. One that was under way may have taken effect all the same."""
        if call.call_id not in self._begun:
            return results.not_made(call)
        self._progress.unknown_outcomes.append(call.call_id)
        return results.interrupted(call)

    def _sent(self, call: PlannedCall, result: ToolResult) -> Outcome | None:
        """A conversational agent that has sent its answer is done (LOOP-06)."""
        if not self._scope.brief.conversational or result.is_error or call.name not in SENDING_TOOLS:
            return None
        sent = next((str(call.arguments[name]) for name in _SENT_TEXT_FIELDS if call.arguments.get(name)), "")
        # It can not be called back any more: what it claims too much is set right in a message of its own.
        added = self._reviewer.sent(sent)
        return Outcome(added) if added else Outcome(sent, sent_by_tool=True)
