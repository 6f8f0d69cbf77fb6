"""One model call: streamed, retried with durable waits (DUR-05), and recorded when complete."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import cast

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, ToolCallPart

from annabelle.core.backoff import RetryPolicy
from annabelle.core.contract import TokenUsage
from annabelle.core.errors import AnnabelleError, HubUnreachable, ProviderFailed, StorageTrouble, TurnCancelled
from annabelle.core.failpoints import failpoint
from annabelle.core.home import write_atomically
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.llm.types import Completed, FallbackUsed, ModelRequest, TextDelta, ThinkDelta
from annabelle.thinker import failpoints
from annabelle.thinker.compression.message_text import response_text
from annabelle.thinker.engine import CANCEL_TOPIC, StepFunction, WorkflowEngine
from annabelle.thinker.live_turn import DeltaBuffer, LiveTurn
from annabelle.thinker.loop.deps import ThinkerDeps, TurnScope
from annabelle.thinker.loop.response_review import ResponseReview, user_text_of


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The result of a model step; `response` is None if the turn's time ran out first."""

    response: ModelResponse | None
    usage: TokenUsage
    seconds: float
    review: ResponseReview = field(default_factory=ResponseReview)

    def to_json(self) -> JsonObject:
        return {
            "response": None if self.response is None else dump_message(self.response),
            "usage": self.usage.model_dump(),
            "seconds": round(self.seconds, 3),
            "review": self.review.to_json(),
        }

    async def as_step(self) -> JsonObject:
        """For an answer that is there without a model call, and is recorded all the same."""
        return self.to_json()

    @classmethod
    def from_json(cls, recorded: JsonObject) -> ModelAnswer:
        response = recorded["response"]
        message = None if response is None else load_message(cast("JsonObject", response))
        return cls(
            response=message if isinstance(message, ModelResponse) else None,
            usage=TokenUsage.model_validate(recorded["usage"]),
            seconds=cast("float", recorded["seconds"]),
            # Steps recorded by an earlier version have no review.
            review=ResponseReview.from_json(
                cast("JsonObject", recorded.get("review") or {"text": _message_text(message)})
            ),
        )


async def call_model(
    deps: ThinkerDeps, scope: TurnScope, request: ModelRequest, *, step: int, attempt: int, time_left: float
) -> ModelAnswer:
    """Make the call. An answer without text and tool calls is an error, unless tools have already run."""
    failpoint(failpoints.BEFORE_MODEL)
    started = time.monotonic()
    asked = user_text_of(scope)
    deltas = DeltaBuffer(
        scope.live.stream, step, attempt, rewrite=lambda text: scope.selection.name_in_words(text, asked)
    )
    completed: Completed | None = None
    try:
        async with asyncio.timeout(time_left), aclosing(deps.model.request(request)) as events:
            async for event in events:
                match event:
                    case TextDelta(text):
                        deltas.add("text", text)
                    case ThinkDelta(text):
                        deltas.add("think", text)
                    case FallbackUsed(answering=other):
                        told: JsonObject = {"text": event.sentence, "code": "model_fallback"}
                        key = f"model-fallback:{other.provider}:{other.model}"
                        scope.live.stream.add_fact("notice", key, told, step=step)
                    case Completed():
                        completed = event
    except TimeoutError:
        return ModelAnswer(None, TokenUsage(), time.monotonic() - started)
    finally:
        deltas.close(drop=completed is not None)
    if completed is None or not _has_content(completed.response, step):
        raise ProviderFailed("The model returned an empty answer.", hint="Try again, or choose another model.")
    seconds = time.monotonic() - started
    deps.costs.add(completed.usage)
    data: JsonObject = {
        "call_id": request.call_id,
        "provider": completed.call.provider,
        "model": completed.call.model,
        "duration_ms": round(seconds * 1000, 1),
        **completed.usage.model_dump(),
    }
    deps.trace.write("model.called", data)
    failpoint(failpoints.AFTER_MODEL)
    return ModelAnswer(completed.response, completed.usage, seconds)


def _has_content(response: ModelResponse, step: int) -> bool:
    called = any(isinstance(part, ToolCallPart) for part in response.parts)
    # Invisible characters, such as a zero-width space, make an empty answer.
    return called or any(char.isprintable() and not char.isspace() for char in response_text(response)) or step > 1


def _message_text(message: ModelMessage | None) -> str:
    return response_text(message) if isinstance(message, ModelResponse) else ""


def dump_message(message: ModelMessage) -> JsonObject:
    """The message as it is stored, without the second wording of results, which only the running turn needs."""
    dumped = cast("list[JsonObject]", ModelMessagesTypeAdapter.dump_python([message], mode="json", exclude_none=True))
    for part in cast("list[JsonObject]", dumped[0]["parts"]):
        part.pop("metadata", None)
    return dumped[0]


def load_message(recorded: JsonObject) -> ModelMessage:
    return ModelMessagesTypeAdapter.validate_python([recorded])[0]


_NOTICE_SECONDS = 5.0
_HUB_SECONDS = 5.0

_log = logging.getLogger(__name__)


class ModelRetries:
    """The tries of one model step. `waited` counts towards the turn's time."""

    def __init__(
        self, engine: WorkflowEngine, policy: RetryPolicy, live: LiveTurn, step: int, time_left: float
    ) -> None:
        self._engine, self._policy, self._live, self._step = engine, policy, live, step
        self._time_left = time_left
        self.waited = 0.0

    async def run(self, name: str, work: StepFunction) -> JsonObject:
        failures = 0
        while True:
            try:
                async with self._live.step():
                    return await self._engine.step(name, work)
            except AnnabelleError as error:
                failures += 1
                delay = self._delay(error, failures)
                if delay is None:
                    error.attempts = failures
                    raise
                _log.warning("%s failed (%s); next try in %.1f s", name, error.message, delay)
                self._notify_wait(error, failures, delay)
            if await self._engine.wait(CANCEL_TOPIC, delay):
                raise TurnCancelled("The turn was stopped.")
            self.waited += delay

    def _delay(self, error: AnnabelleError, failures: int) -> float | None:
        """Depends on the error's class; the hub is waited for as long as the turn has time (THK-06)."""
        if isinstance(error, HubUnreachable):
            return _HUB_SECONDS if self.waited < self._time_left else None
        return self._policy.wait_seconds(error, failures)

    def _notify_wait(self, error: AnnabelleError, failures: int, delay: float) -> None:
        """Tell of a wait, for a countdown (THR-05), and explain a long one: what is wrong and what to do.

        The key is the number of the failure, which a replay repeats; the delay differs each time.
        """
        data: JsonObject = {"code": error.code, "attempt": failures + 1, "seconds": round(delay, 1)}
        number: int | str = failures
        if isinstance(error, HubUnreachable):
            # No number of tries, and nobody to tell each of them to.
            number = "hub"
        else:
            data["attempts"] = self._policy.tries(error)
        data["retryAt"] = (now() + timedelta(seconds=delay)).isoformat(timespec="milliseconds")
        if delay >= _NOTICE_SECONDS:
            next_try = f"The next try is in {delay:.0f} seconds."
            data["text"] = " ".join(filter(None, [error.message, error.hint, next_try]))
        self._live.stream.add_fact("notice", f"model-retry:{self._step}:{number}", data, step=self._step)


TRIES_PER_GENERATION = 100


def next_generation(folder: Path) -> int:
    """The number of this process: one more than the agent's last one."""
    file = folder / "generation"
    try:
        number = int(file.read_text(encoding="ascii")) + 1
    except (FileNotFoundError, ValueError):
        number = 1
    try:
        write_atomically(file, str(number))
    except OSError as error:
        raise StorageTrouble(
            f"{file} could not be written: {error.strerror}.", hint="Free some disk space or fix its permissions."
        ) from error
    return number


def attempt_number(generation: int, local_try: int) -> int:
    """Grows with every try of a step, also across restarts."""
    return generation * TRIES_PER_GENERATION + min(local_try, TRIES_PER_GENERATION - 1)
