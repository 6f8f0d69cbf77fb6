"""One model call: streamed to the readers, recorded when it is whole."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import cast

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, ToolCallPart

from annabelle.core.contract import Usage
from annabelle.core.errors import ProviderFailed
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import JsonObject
from annabelle.llm.types import Completed, FellBack, ModelRequest, TextDelta, ThinkDelta
from annabelle.thinker import failpoints
from annabelle.thinker.deltas import DeltaBuffer
from annabelle.thinker.loop.answering import Review
from annabelle.thinker.loop.bench import Workbench
from annabelle.thinker.loop.calls import text_of
from annabelle.thinker.loop.scope import TurnScope


@dataclass(frozen=True, slots=True)
class Answer:
    """What a finished model step says; `response` is None when the turn's time ran out first."""

    response: ModelResponse | None
    usage: Usage
    seconds: float
    review: Review = field(default_factory=Review)

    def to_json(self) -> JsonObject:
        return {
            "response": None if self.response is None else dump_message(self.response),
            "usage": self.usage.model_dump(),
            "seconds": round(self.seconds, 3),
            "review": self.review.to_json(),
        }

    @classmethod
    def from_json(cls, recorded: JsonObject) -> Answer:
        response = recorded["response"]
        message = None if response is None else load_message(cast("JsonObject", response))
        return cls(
            response=message if isinstance(message, ModelResponse) else None,
            usage=Usage.model_validate(recorded["usage"]),
            seconds=cast("float", recorded["seconds"]),
            # A step recorded by an earlier version has none, and was shown as it was.
            review=Review.from_json(cast("JsonObject", recorded.get("review") or {"text": _text(message)})),
        )


async def ask_model(
    bench: Workbench, scope: TurnScope, request: ModelRequest, *, step: int, attempt: int, time_left: float
) -> Answer:
    """Make the call. An answer with neither text nor tool call is no answer, unless tools already did the work."""
    failpoint(failpoints.BEFORE_MODEL)
    started = time.monotonic()
    deltas = DeltaBuffer(scope.live.stream, step, attempt)
    completed: Completed | None = None
    try:
        async with asyncio.timeout(time_left), aclosing(bench.model.request(request)) as events:
            async for event in events:
                match event:
                    case TextDelta(text):
                        deltas.add("text", text)
                    case ThinkDelta(text):
                        deltas.add("think", text)
                    case FellBack(answering=other):
                        told: JsonObject = {"text": event.sentence, "code": "model_fallback"}
                        key = f"model-fallback:{other.provider}:{other.model}"
                        scope.live.stream.fact("notice", key, told, step=step)
                    case Completed():
                        completed = event
    except TimeoutError:
        return Answer(None, Usage(), time.monotonic() - started)
    finally:
        deltas.close(drop=completed is not None)
    if completed is None or not _says_something(completed.response, step):
        raise ProviderFailed("The model returned an empty answer.", hint="Try again, or choose another model.")
    seconds = time.monotonic() - started
    bench.costs.add(completed.usage)
    data: JsonObject = {
        "call_id": request.call_id,
        "provider": completed.call.provider,
        "model": completed.call.model,
        "duration_ms": round(seconds * 1000, 1),
        **completed.usage.model_dump(),
    }
    bench.trace.write("model.called", data)
    failpoint(failpoints.AFTER_MODEL)
    return Answer(completed.response, completed.usage, seconds)


def _says_something(response: ModelResponse, step: int) -> bool:
    called = any(isinstance(part, ToolCallPart) for part in response.parts)
    # Signs without a shape, as a zero-width space, are an empty answer to whoever reads it.
    return called or any(sign.isprintable() and not sign.isspace() for sign in text_of(response)) or step > 1


def _text(message: ModelMessage | None) -> str:
    return text_of(message) if isinstance(message, ModelResponse) else ""


def dump_message(message: ModelMessage) -> JsonObject:
    dumped = ModelMessagesTypeAdapter.dump_python([message], mode="json", exclude_none=True)
    return cast("list[JsonObject]", dumped)[0]


def load_message(recorded: JsonObject) -> ModelMessage:
    return ModelMessagesTypeAdapter.validate_python([recorded])[0]
