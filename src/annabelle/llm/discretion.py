"""What a model says, without the keys of this process: a provider may repeat the key it was called with (POL-06)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from annabelle.core.redact import Forms
from annabelle.llm.types import Completed, ModelEvent, TextDelta, ThinkDelta

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

_SPOKEN = {"text", "thinking"}


async def discreet(events: AsyncIterable[ModelEvent], secrets: Forms) -> AsyncGenerator[ModelEvent]:
    """The same events with masks. The end of a piece is held back while it may be the beginning of a secret."""
    held: TextDelta | ThinkDelta | None = None
    async for event in events:
        if isinstance(event, TextDelta | ThinkDelta):
            if held is not None and type(held) is not type(event):
                yield replace(held, text=secrets.masked(held.text))
                held = None
            text = secrets.masked(event.text if held is None else held.text + event.text)
            safe = len(text) - secrets.begun(text)
            held = replace(event, text=text[safe:]) if safe < len(text) else None
            if safe:
                yield replace(event, text=text[:safe])
            continue
        if held is not None:
            yield held
            held = None
        yield replace(event, response=_masked(event.response, secrets)) if isinstance(event, Completed) else event
    if held is not None:
        yield held


def _masked(response: ModelResponse, secrets: Forms) -> ModelResponse:
    parts = list(_masked_parts(response, secrets))
    return response if parts == list(response.parts) else replace(response, parts=parts)


def _masked_parts(response: ModelResponse, secrets: Forms) -> Iterator[object]:
    for part in response.parts:
        if part.part_kind in _SPOKEN:
            content = cast("str", getattr(part, "content", ""))
            yield replace(part, content=secrets.masked(content)) if secrets.within(content) else part
        elif part.part_kind == "tool-call" and secrets.within(part.args):
            yield replace(part, args=secrets.masked_data(part.args))
        else:
            yield part
