"""Runs one turn from its prompt to its outcome: each model call and each tool call is a durable step.

Every decision depends only on recorded steps and the brief. A process that takes over a turn therefore makes the same
decisions, gets the recorded results, and continues after the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, UserPromptPart

from annabelle.core.backoff import RetryPolicy
from annabelle.core.contract import TokenUsage
from annabelle.core.errors import AnnabelleError, ModelTooSmall, TurnCancelled
from annabelle.core.tools import JsonObject
from annabelle.llm.types import ModelRequest as ModelAsk
from annabelle.thinker.compression.message_text import response_text
from annabelle.thinker.compression.port import CompressionRequest, CompressionResult
from annabelle.thinker.loop import turn_progress
from annabelle.thinker.loop.batch import ToolBatch
from annabelle.thinker.loop.call import plan_calls
from annabelle.thinker.loop.deps import ThinkerDeps, TurnScope
from annabelle.thinker.loop.model_call import ModelAnswer, ModelRetries, attempt_number, call_model
from annabelle.thinker.loop.parked_turn import answered_results, plan_pending_calls, restore_progress
from annabelle.thinker.loop.response_review import ResponseReview, ResponseReviewer, SecondTry, replace_text
from annabelle.thinker.loop.turn_progress import LoopOutcome, TurnProgress
from annabelle.thinker.selection.selection import ToolSelection
from annabelle.thinker.summary_model import is_packaged

_FORCED_TEMPERATURE: Final = 0.3
"""The maximum when the model is forced to call a tool."""


@dataclass(frozen=True, slots=True)
class SecondChance:
    """An answer that was sent back. `honest` is shown to the person if the second try fails."""

    way: SecondTry
    messages: tuple[ModelMessage, ...]
    honest: str


class AgentLoop:
    """One run. `progress` is valid for the session record even if the run ends in an error."""

    def __init__(self, deps: ThinkerDeps, scope: TurnScope) -> None:
        self._deps, self._scope = deps, scope
        self._stream = scope.live.stream
        self._attempt = attempt_number(deps.generation, 0)
        resume = scope.brief.resume
        self.progress = TurnProgress() if resume is None else restore_progress(resume)
        self._reviewer = ResponseReviewer(deps, scope, self.progress)
        self._tools = ToolBatch(deps, scope, self.progress, self._reviewer)
        self._second: SecondChance | None = None

    async def run(self) -> LoopOutcome:
        """Run until the model is done, a call waits for the person, a limit is reached, or an error is raised."""
        progress = self.progress
        if (resume := self._scope.brief.resume) is not None:
            calls = plan_pending_calls(self._scope.brief, resume)
            outcome = await self._tools.run(calls, self._tools.selection, answered_results(resume))
            if outcome is not None:
                return outcome
        while True:
            stop = turn_progress.check_before_step(progress, self._scope.limits, self._scope.brief.token_budget)
            if stop is not None:
                return self._fallback_outcome() or LoopOutcome(
                    turn_progress.format_stop(stop, progress), limit=stop.limit
                )
            progress.step += 1
            try:
                answer, selection = await self._call_model()
            except TurnCancelled:
                raise
            except AnnabelleError:
                if (honest := self._fallback_outcome()) is not None:
                    return honest
                raise
            progress.seconds += answer.seconds
            progress.usage = progress.usage + answer.usage
            if answer.response is None:
                stop = turn_progress.stop_for_wall_clock(self._scope.limits)
                return self._fallback_outcome() or LoopOutcome(
                    turn_progress.format_stop(stop, progress), limit=stop.limit
                )
            outcome = await self._handle_response(answer.response, answer, selection)
            if outcome is not None:
                return outcome

    async def _handle_response(
        self, response: ModelResponse, answer: ModelAnswer, selection: ToolSelection
    ) -> LoopOutcome | None:
        """Make the calls of a response, send it back once, or end the turn with it."""
        progress, review = self.progress, answer.review
        # A model may remember a tool from earlier in the conversation; the hub checks every call again.
        called = [part.tool_name for part in response.parts if isinstance(part, ToolCallPart)]
        selection = self._tools.selection = selection.with_found(called)
        calls = plan_calls(response, self._scope.brief, progress.step, selection, recovered=review.recovered)
        if not calls and review.again is not None:
            self._emit_text(answer, "")
            asked_again = ModelRequest(parts=[UserPromptPart(content=review.reminder)])
            self._second = SecondChance(review.again, (response, asked_again), review.text)
            progress.second_chance = True
            return None
        text = review.text
        if not calls and not text:
            text = self._second.honest if self._second is not None else self._closing_text()
        self._second = None
        self._emit_text(answer, text)
        progress.last_text = text or progress.last_text
        if calls:
            progress.messages.append(response)
            return await self._tools.run(calls, selection)
        # Later turns must read what the person read.
        progress.messages.append(replace_text(response, text))
        return LoopOutcome(text)

    def _fallback_outcome(self) -> LoopOutcome | None:
        """The honest answer, if an answer was sent back and no better one came."""
        if self._second is None:
            return None
        text = self._second.honest
        step = self.progress.step + 1
        self._stream.add_fact("text", f"{step}:text", {"text": text, "final": True}, step=step, attempt=self._attempt)
        first = self._second.messages[0]
        if isinstance(first, ModelResponse):
            self.progress.messages.append(replace_text(first, text))
        return LoopOutcome(text)

    async def _call_model(self) -> tuple[ModelAnswer, ToolSelection]:
        deps, scope, step = self._deps, self._scope, self.progress.step
        selection, second = self._tools.selection, self._second
        direct = None if scope.direct is None else scope.direct.respond(self.progress.messages)
        if direct is not None:
            said = ModelAnswer(direct, TokenUsage(), 0.0, ResponseReview(response_text(direct)))
            return ModelAnswer.from_json(await deps.engine.step(f"model {step}", said.as_step)), selection
        time_left = max(1.0, scope.limits.wall_clock_seconds - self.progress.seconds)
        async with scope.live.step():
            workspace = "" if scope.workspace is None else await scope.live.run_cancellable(scope.workspace.render())
            thought = await scope.live.run_cancellable(self._compress_context(workspace))
        tries = 0

        async def ask_step() -> JsonObject:
            nonlocal tries
            attempt = self._attempt = attempt_number(deps.generation, tries)
            tries += 1
            choice = await deps.model.choose()
            if scope.brief.has_own_task and is_packaged(choice):
                raise ModelTooSmall(
                    "Goals, skills and subagents take a larger model than the packaged one.",
                    hint="annabelle init connects one.",
                )
            # A model that is only good for conversation gets no tools.
            tools = bool(selection.tools) and choice.tool_mode != "none"
            messages = scope.prompt.messages(
                thought.compressed_history, tools=tools, workspace=workspace, thinking=thought.context
            )
            request = ModelAsk(
                call_id=f"{scope.brief.message_id}:{step}:m{attempt}",
                messages=[*messages, *(second.messages if second is not None else ())],
                tools=list(selection.tools) if choice.tool_mode == "trained" else selection.shown(),
                temperature=self._temperature(selection),
                tool_choice="required" if second is not None and second.way == "force" else "auto",
                user_id=scope.brief.user_id,
                message_id=scope.brief.message_id,
                trace_id=scope.brief.trace_id,
            )
            answer = await scope.live.run_cancellable(
                call_model(deps, scope, request, step=step, attempt=attempt, time_left=time_left)
            )
            deps.compressor.learn(request, choice.model, answer.usage)
            if answer.response is not None:
                trained = choice.tool_mode == "trained" or is_packaged(choice)
                response, review = self._reviewer.review(answer.response, selection, tools=tools, trained=trained)
                answer = replace(answer, response=response, review=review)
            return answer.to_json()

        retries = ModelRetries(deps.engine, RetryPolicy.from_settings(deps.settings), scope.live, step, time_left)
        recorded = await retries.run(f"model {step}", ask_step)
        self.progress.seconds += retries.waited
        return ModelAnswer.from_json(recorded), selection

    def _temperature(self, selection: ToolSelection) -> float | None:
        deps = self._deps
        wished = deps.profile.temperature if selection.temperature is None else selection.temperature
        if self._second is None or self._second.way != "force":
            return wished
        return min(_FORCED_TEMPERATURE, deps.settings.thinker_temperature if wished is None else wished)

    async def _compress_context(self, workspace: str) -> CompressionResult:
        """Compress the conversation so far for the next request (CMP-02)."""
        deps, scope, step = self._deps, self._scope, self.progress.step
        thought = await deps.compressor.think(
            CompressionRequest(
                brief=scope.brief,
                step=step,
                messages=scope.prompt.conversation(self.progress.messages),
                goal=scope.prompt.user,
                workspace=workspace,
                open_tasks=() if scope.workspace is None else scope.workspace.state.open_tasks(),
                model=await self._model_name(),
            )
        )
        if thought.metrics:
            deps.trace.write("thinking.done", thought.metrics)
        if thought.thinking_tokens:
            # Only the sum of these calls is known here; the hub's ledger has each with its price.
            used = TokenUsage(input_tokens=thought.thinking_tokens)
            self.progress.usage = self.progress.usage + used
            self._stream.add_fact("usage", f"{step}:thinking", used.model_dump(), step=step)
        return thought

    async def _model_name(self) -> str:
        """The current model, or an empty name if none is available: the step itself waits for one."""
        try:
            return (await self._deps.model.choose()).model
        except AnnabelleError:
            return ""

    def _emit_text(self, answer: ModelAnswer, text: str) -> None:
        """Emit the final text of a step, which replaces its deltas; empty for an answer that was sent back."""
        step, attempt = self.progress.step, self._attempt
        if text or answer.review.again is not None:
            self._stream.add_fact("text", f"{step}:text", {"text": text, "final": True}, step=step, attempt=attempt)
        self._stream.add_fact("usage", f"{step}:usage", answer.usage.model_dump(), step=step, attempt=attempt)

    def _closing_text(self) -> str:
        """For a model that ends without text after its tools ran; claims no more than they did."""
        if self._scope.brief.may_be_silent:
            return ""
        used = ", ".join(self.progress.tools_used)
        return f"The model ended without a text. Tools that ran: {used}." if used else "The model ended without a text."


def make_failure_outcome(error: AnnabelleError, trace_id: str) -> LoopOutcome:
    """The outcome of a turn that an error ended."""
    body = error.body(trace_id)
    text = "" if isinstance(error, TurnCancelled) else (f"{body.message} {body.hint}" if body.hint else body.message)
    return LoopOutcome(text, error=body)
