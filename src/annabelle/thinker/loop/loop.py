"""Runs one turn from its prompt to its outcome: each model call and each tool call is a durable step.

What decides the way through the loop comes only from recorded steps and the brief. So a process that takes over a
turn walks the same way, is handed the recorded results, and goes on behind the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, UserPromptPart

from annabelle.core.contract import Usage
from annabelle.core.errors import AnnabelleError, TurnCancelled
from annabelle.core.tools import JsonObject
from annabelle.durable.retry import RetryPolicy
from annabelle.llm.types import ModelRequest as ModelAsk
from annabelle.thinker.compress.port import ThinkingAsk, ThinkingResult
from annabelle.thinker.generation import attempt_number
from annabelle.thinker.loop import limits
from annabelle.thinker.loop.answering import Again, Reviewer, with_text
from annabelle.thinker.loop.bench import Workbench
from annabelle.thinker.loop.calls import planned_calls
from annabelle.thinker.loop.model_step import Answer, ask_model
from annabelle.thinker.loop.outcome import Outcome
from annabelle.thinker.loop.progress import Progress
from annabelle.thinker.loop.resuming import answered_results, pending_calls, restored
from annabelle.thinker.loop.retries import Retries
from annabelle.thinker.loop.scope import TurnScope
from annabelle.thinker.loop.tools_step import ToolsStep
from annabelle.thinker.select.selector import Selection

_COOLER: Final = 0.3
"""The most a model may improvise when a tool is demanded of it."""


@dataclass(frozen=True, slots=True)
class SecondChance:
    """An answer that was sent back. `honest` is what the person reads should the second try come to nothing."""

    way: Again
    messages: tuple[ModelMessage, ...]
    honest: str


class Loop:
    """One run. `progress` is there for whoever writes the session, also when the run ends in an error."""

    def __init__(self, bench: Workbench, scope: TurnScope) -> None:
        self._bench, self._scope = bench, scope
        self._stream = scope.live.stream
        self._attempt = attempt_number(bench.generation, 0)
        resume = scope.brief.resume
        self.progress = Progress() if resume is None else restored(resume)
        self._reviewer = Reviewer(bench, scope, self.progress)
        self._tools = ToolsStep(bench, scope, self.progress, self._reviewer)
        self._second: SecondChance | None = None

    async def run(self) -> Outcome:
        """Until the model has nothing more to ask, a call waits for the person, a limit is reached, or it fails."""
        progress = self.progress
        if (resume := self._scope.brief.resume) is not None:
            calls = pending_calls(self._scope.brief, resume)
            outcome = await self._tools.run(calls, self._tools.selection, answered_results(resume))
            if outcome is not None:
                return outcome
        while True:
            stop = limits.before_step(progress, self._scope.limits, self._scope.brief.token_budget)
            if stop is not None:
                return self._without_second() or Outcome(limits.gathered(stop, progress), limit=stop.limit)
            progress.step += 1
            try:
                answer, selection = await self._model_step()
            except TurnCancelled:
                raise
            except AnnabelleError:
                if (honest := self._without_second()) is not None:
                    return honest
                raise
            progress.seconds += answer.seconds
            progress.usage = progress.usage + answer.usage
            if answer.response is None:
                stop = limits.wall_clock(self._scope.limits)
                return self._without_second() or Outcome(limits.gathered(stop, progress), limit=stop.limit)
            outcome = await self._take(answer.response, answer, selection)
            if outcome is not None:
                return outcome

    async def _take(self, response: ModelResponse, answer: Answer, selection: Selection) -> Outcome | None:
        """Go on with a response: make its calls, give it a second chance, or end the turn with it."""
        progress, review = self.progress, answer.review
        # A model may remember a tool from earlier in the conversation; the hub checks every call again.
        called = [part.tool_name for part in response.parts if isinstance(part, ToolCallPart)]
        selection = self._tools.selection = selection.with_found(called)
        calls = planned_calls(response, self._scope.brief, progress.step, selection, recovered=review.recovered)
        if not calls and review.again is not None:
            self._tell(answer, "")
            asked_again = ModelRequest(parts=[UserPromptPart(content=review.reminder)])
            self._second = SecondChance(review.again, (response, asked_again), review.text)
            progress.second_chance = True
            return None
        text = review.text
        if not calls and not text:
            text = self._second.honest if self._second is not None else self._closing_words()
        self._second = None
        self._tell(answer, text)
        progress.last_text = text or progress.last_text
        if calls:
            progress.messages.append(response)
            return await self._tools.run(calls, selection)
        # What later turns read is what the person read.
        progress.messages.append(with_text(response, text))
        return Outcome(text)

    def _without_second(self) -> Outcome | None:
        """The honest answer, when an answer was sent back and no better one came."""
        if self._second is None:
            return None
        text = self._second.honest
        step = self.progress.step + 1
        self._stream.fact("text", f"{step}:text", {"text": text, "final": True}, step=step, attempt=self._attempt)
        first = self._second.messages[0]
        if isinstance(first, ModelResponse):
            self.progress.messages.append(with_text(first, text))
        return Outcome(text)

    async def _model_step(self) -> tuple[Answer, Selection]:
        bench, scope, step = self._bench, self._scope, self.progress.step
        selection, second = self._tools.selection, self._second
        time_left = max(1.0, scope.limits.wall_clock_seconds - self.progress.seconds)
        async with scope.live.step():
            workspace = "" if scope.workspace is None else await scope.live.work(scope.workspace.render())
            thought = await scope.live.work(self._think(workspace))
        tries = 0

        async def ask() -> JsonObject:
            nonlocal tries
            attempt = self._attempt = attempt_number(bench.generation, tries)
            tries += 1
            choice = await bench.model.choose()
            # A model that is only trusted with conversation hears of no tool, however many there are.
            tools = bool(selection.tools) and choice.tool_mode != "none"
            messages = scope.prompt.messages(
                thought.compressed_history, tools=tools, workspace=workspace, thinking=thought.context
            )
            request = ModelAsk(
                call_id=f"{scope.brief.message_id}:{step}:m{attempt}",
                messages=[*messages, *(second.messages if second is not None else ())],
                tools=list(selection.tools),
                temperature=self._temperature(selection),
                tool_choice="required" if second is not None and second.way == "force" else "auto",
                user_id=scope.brief.user_id,
                message_id=scope.brief.message_id,
                trace_id=scope.brief.trace_id,
            )
            answer = await scope.live.work(
                ask_model(bench, scope, request, step=step, attempt=attempt, time_left=time_left)
            )
            bench.thinking.learn(request, choice.model, answer.usage)
            if answer.response is not None:
                response, review = self._reviewer.review(answer.response, selection, tools=tools)
                answer = replace(answer, response=response, review=review)
            return answer.to_json()

        retries = Retries(bench.engine, RetryPolicy.from_settings(bench.settings), scope.live, step, time_left)
        recorded = await retries.run(f"model {step}", ask)
        self.progress.seconds += retries.waited
        return Answer.from_json(recorded), selection

    def _temperature(self, selection: Selection) -> float | None:
        bench = self._bench
        wished = bench.profile.temperature if selection.temperature is None else selection.temperature
        if self._second is None or self._second.way != "force":
            return wished
        return min(_COOLER, bench.settings.thinker_temperature if wished is None else wished)

    async def _think(self, workspace: str) -> ThinkingResult:
        """What goes to the model of the conversation so far (CMP-02)."""
        bench, scope, step = self._bench, self._scope, self.progress.step
        thought = await bench.thinking.think(
            ThinkingAsk(
                brief=scope.brief,
                step=step,
                messages=scope.prompt.conversation(self.progress.messages),
                goal=scope.prompt.user,
                workspace=workspace,
                model=await self._model_name(),
            )
        )
        if thought.metrics:
            bench.trace.write("thinking.done", thought.metrics)
        if thought.thinking_tokens:
            # Of these calls only their sum is known here; the hub's ledger has each with its price.
            used = Usage(input_tokens=thought.thinking_tokens)
            self.progress.usage = self.progress.usage + used
            self._stream.fact("usage", f"{step}:thinking", used.model_dump(), step=step)
        return thought

    async def _model_name(self) -> str:
        """The model in force, as far as it is known: the step itself waits for one that is down."""
        try:
            return (await self._bench.model.choose()).model
        except AnnabelleError:
            return ""

    def _tell(self, answer: Answer, text: str) -> None:
        """The whole text of a step, which replaces what was streamed of it; an answer sent back is replaced by none."""
        step, attempt = self.progress.step, self._attempt
        if text or answer.review.again is not None:
            self._stream.fact("text", f"{step}:text", {"text": text, "final": True}, step=step, attempt=attempt)
        self._stream.fact("usage", f"{step}:usage", answer.usage.model_dump(), step=step, attempt=attempt)

    def _closing_words(self) -> str:
        """For a model that ends without a word after its tools did the work; it claims no more than they did."""
        used = ", ".join(self.progress.tools_used)
        return f"The model ended without a text. Tools that ran: {used}." if used else "The model ended without a text."


def failure(error: AnnabelleError, trace_id: str) -> Outcome:
    """An error that ended the turn, said in one sentence."""
    body = error.body(trace_id)
    text = "" if isinstance(error, TurnCancelled) else (f"{body.message} {body.hint}" if body.hint else body.message)
    return Outcome(text, error=body)
