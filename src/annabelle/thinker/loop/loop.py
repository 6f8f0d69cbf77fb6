"""Runs one turn from its prompt to its outcome: each model call and each tool call is a durable step.

What decides the way through the loop comes only from recorded steps and the brief. So a process that takes over a
turn walks the same way, is handed the recorded results, and goes on behind the last one.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from pydantic_ai.messages import ModelRequest, ModelResponse, ToolReturnPart

from annabelle.core.errors import AnnabelleError, TurnCancelled
from annabelle.core.tools import JsonObject, ToolResult
from annabelle.durable.retry import RetryPolicy
from annabelle.llm.types import ModelRequest as ModelAsk
from annabelle.thinker.compress.port import ThinkingAsk, ThinkingResult
from annabelle.thinker.generation import attempt_number
from annabelle.thinker.loop import limits, results
from annabelle.thinker.loop.bench import Workbench
from annabelle.thinker.loop.calls import PlannedCall, all_read_only, planned_calls, text_of
from annabelle.thinker.loop.model_step import Answer, ask_model
from annabelle.thinker.loop.outcome import Outcome
from annabelle.thinker.loop.progress import Progress
from annabelle.thinker.loop.retries import Retries
from annabelle.thinker.loop.scope import TurnScope
from annabelle.thinker.loop.tool_step import CallMade, call_tool
from annabelle.thinker.select.selector import Selection

SEARCH_TOOLS: Final = "search_tools"
SENDING_TOOLS: Final = frozenset({"send_message", "send_telegram"})
_SENT_TEXT_FIELDS: Final = ("text", "message", "content")


class Loop:
    """One run. `progress` is there for whoever writes the session, also when the run ends in an error."""

    def __init__(self, bench: Workbench, scope: TurnScope) -> None:
        self._bench, self._scope = bench, scope
        self._stream = scope.live.stream
        self._attempt = attempt_number(bench.generation, 0)
        self._begun: set[str] = set()
        self._selection = scope.selection
        self.progress = Progress()

    async def run(self) -> Outcome:
        """Until the model has nothing more to ask, a limit is reached, or an error can not be waited out."""
        progress = self.progress
        while True:
            stop = limits.before_step(progress, self._scope.limits)
            if stop is not None:
                return Outcome(limits.gathered(stop, progress), limit=stop.limit)
            progress.step += 1
            answer, selection = await self._model_step()
            progress.seconds += answer.seconds
            progress.usage = progress.usage + answer.usage
            if answer.response is None:
                stop = limits.wall_clock(self._scope.limits)
                return Outcome(limits.gathered(stop, progress), limit=stop.limit)
            self._tell_answer(answer.response, answer)
            progress.messages.append(answer.response)
            progress.last_text = text_of(answer.response) or progress.last_text
            calls = planned_calls(answer.response, self._scope.brief.message_id, progress.step)
            if not calls:
                return Outcome(text_of(answer.response) or self._closing_words())
            outcome = await self._tools_step(calls, selection)
            if outcome is not None:
                return outcome

    async def _model_step(self) -> tuple[Answer, Selection]:
        bench, scope, step = self._bench, self._scope, self.progress.step
        selection = self._selection
        time_left = max(1.0, scope.limits.wall_clock_seconds - self.progress.seconds)
        workspace = "" if scope.workspace is None else await scope.workspace.render()
        thought = await self._think(workspace)
        tries = 0

        async def ask() -> JsonObject:
            nonlocal tries
            attempt = self._attempt = attempt_number(bench.generation, tries)
            tries += 1
            choice = await bench.model.choose()
            request = ModelAsk(
                call_id=f"{scope.brief.message_id}:{step}:m{attempt}",
                messages=scope.prompt.messages(
                    thought.compressed_history,
                    # A model that is only trusted with conversation hears of no tool, however many there are.
                    tools=bool(selection.tools) and choice.tool_mode != "none",
                    workspace=workspace,
                    thinking=thought.context,
                ),
                tools=list(selection.tools),
                temperature=bench.profile.temperature if selection.temperature is None else selection.temperature,
                user_id=scope.brief.user_id,
                message_id=scope.brief.message_id,
                trace_id=scope.brief.trace_id,
            )
            answer = await scope.live.work(
                ask_model(bench, scope, request, step=step, attempt=attempt, time_left=time_left)
            )
            return answer.to_json()

        retries = Retries(bench.engine, RetryPolicy.from_settings(bench.settings), scope.live, step, time_left)
        recorded = await retries.run(f"model {step}", ask)
        self.progress.seconds += retries.waited
        return Answer.from_json(recorded), selection

    async def _think(self, workspace: str) -> ThinkingResult:
        """What goes to the model of the conversation so far (CMP-02)."""
        bench, scope = self._bench, self._scope
        thought = await bench.thinking.think(
            ThinkingAsk(
                brief=scope.brief,
                step=self.progress.step,
                messages=scope.prompt.conversation(self.progress.messages),
                goal=scope.prompt.user,
                workspace=workspace,
                model=(await bench.model.choose()).model,
            )
        )
        if thought.metrics:
            bench.trace.write("thinking.done", thought.metrics)
        return thought

    async def _tools_step(self, calls: list[PlannedCall], selection: Selection) -> Outcome | None:
        """Make the calls of one step. Returns an outcome when they end the turn."""
        allowed = self._within_limit(calls)
        parts: list[ToolReturnPart] = []
        try:
            if len(allowed) > 1 and all_read_only(allowed, selection):
                ended = await self._all_at_once(allowed, selection, parts)
            else:
                ended = await self._in_order(allowed, selection, parts)
        finally:
            # Also when the turn is cut off here: the session must never hold a call without its result.
            answered = {part.tool_call_id for part in parts}
            parts += [self._unanswered(call) for call in calls if call.model_id not in answered]
            self.progress.messages.append(ModelRequest(parts=parts))
        if ended is not None:
            return ended
        stop = limits.after_tools(self.progress, self._scope.limits)
        if stop is None and len(allowed) < len(calls):
            stop = limits.tool_calls(self._scope.limits)
        return None if stop is None else Outcome(limits.gathered(stop, self.progress), limit=stop.limit)

    async def _all_at_once(
        self, calls: list[PlannedCall], selection: Selection, parts: list[ToolReturnPart]
    ) -> Outcome | None:
        found = await asyncio.gather(*(self._tool_step(c, selection) for c in calls), return_exceptions=True)
        made = [(call, one) for call, one in zip(calls, found, strict=True) if isinstance(one, CallMade)]
        parts += [self._take(call, one.result) for call, one in made]
        self.progress.seconds += max((one.seconds for _, one in made), default=0.0)
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return None

    async def _in_order(
        self, calls: list[PlannedCall], selection: Selection, parts: list[ToolReturnPart]
    ) -> Outcome | None:
        for call in calls:
            made = await self._tool_step(call, selection)
            self.progress.seconds += made.seconds
            parts.append(self._take(call, made.result))
            ended = self._sent(call, made.result)
            if ended is not None:
                return ended
        return None

    async def _tool_step(self, call: PlannedCall, selection: Selection) -> CallMade:
        scope, step = self._scope, self.progress.step
        start: JsonObject = {"call_id": call.call_id, "name": call.name, "arguments": call.arguments}
        self._stream.fact("tool_start", f"{step}:tool:{call.index}:start", start, step=step)
        self._begun.add(call.call_id)

        async def make() -> JsonObject:
            return (await scope.live.work(call_tool(self._bench, scope, call, selection))).to_json()

        async with scope.live.step():
            # A name of its own: calls that run at the same time are told apart by it when they are replayed.
            made = CallMade.from_json(await self._bench.engine.step(f"tool {step}:{call.index}", make))
        key = f"{step}:tool:{call.index}:complete"
        self._stream.fact("tool_complete", key, results.completion(call, made.result), step=step)
        return made

    def _within_limit(self, calls: list[PlannedCall]) -> list[PlannedCall]:
        most = self._scope.limits.max_tool_calls
        return calls if most is None else calls[: max(0, most - self.progress.tool_calls)]

    def _take(self, call: PlannedCall, result: ToolResult) -> ToolReturnPart:
        """Count what a call did, and answer it in the conversation."""
        progress = self.progress
        progress.tool_calls += 1
        progress.mistakes = progress.mistakes + 1 if result.is_error else 0
        progress.repetition.note(call.name, call.arguments, result.text)
        if self._scope.workspace is not None:
            self._scope.workspace.observe(call.name, call.arguments, result)
        if result.is_error:
            if results.is_unknown(result):
                progress.unknown_outcomes.append(call.call_id)
        else:
            progress.used(call.name)
            self._look_around(call, result)
            progress.last_result = result.text
        return results.for_model(call, result)

    def _look_around(self, call: PlannedCall, result: ToolResult) -> None:
        """Offer what the model found with `search_tools` from the next step on."""
        if call.name == SEARCH_TOOLS and result.structured is not None:
            found = result.structured.get("tools")
            rows = cast("list[object]", found) if isinstance(found, list) else []
            names = [str(cast("JsonObject", row).get("name")) for row in rows if isinstance(row, dict)]
            self._selection = self._selection.with_found(names)

    def _unanswered(self, call: PlannedCall) -> ToolReturnPart:
        """Answers a call the turn did not wait for. One that was under way may have taken effect all the same."""
        if call.call_id not in self._begun:
            return results.not_made(call)
        self.progress.unknown_outcomes.append(call.call_id)
        return results.interrupted(call)

    def _sent(self, call: PlannedCall, result: ToolResult) -> Outcome | None:
        """A conversational agent that has sent its answer is done (LOOP-06)."""
        if not self._scope.brief.conversational or result.is_error or call.name not in SENDING_TOOLS:
            return None
        sent = next((str(call.arguments[name]) for name in _SENT_TEXT_FIELDS if call.arguments.get(name)), "")
        return Outcome(sent, sent_by_tool=True)

    def _tell_answer(self, response: ModelResponse, answer: Answer) -> None:
        step, text = self.progress.step, text_of(response)
        whole: JsonObject = {"text": text, "final": True}
        if text:
            self._stream.fact("text", f"{step}:text", whole, step=step, attempt=self._attempt)
        self._stream.fact("usage", f"{step}:usage", answer.usage.model_dump(), step=step, attempt=self._attempt)

    def _closing_words(self) -> str:
        """For a model that ends without a word after its tools did the work; it claims no more than they did."""
        used = ", ".join(self.progress.tools_used)
        return f"The model ended without a text. Tools that ran: {used}." if used else "The model ended without a text."


def failure(error: AnnabelleError, trace_id: str) -> Outcome:
    """An error that ended the turn, said in one sentence."""
    body = error.body(trace_id)
    text = "" if isinstance(error, TurnCancelled) else (f"{body.message} {body.hint}" if body.hint else body.message)
    return Outcome(text, error=body)
