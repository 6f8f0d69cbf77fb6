"""A provider that repeats its key: no piece, and no whole, of an answer holds it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart

from annabelle.core.contract import ModelCall, TokenUsage
from annabelle.core.secrets.redactor import MASK, Redactor
from annabelle.llm.service import redact_stream
from annabelle.llm.types import Completed, ModelEvent, TextDelta, ThinkDelta

KEY = "kelmarsh-9917-Prouvet"


async def _each(events: list[ModelEvent]) -> AsyncIterator[ModelEvent]:
    for event in events:
        yield event


@pytest.mark.req("POL-06")
@pytest.mark.incident("I-30")
@pytest.mark.parametrize("size", [1, 2, 7, len(KEY), 100])
async def test_a_key_is_masked_however_a_stream_cuts_it(size: int) -> None:
    text = f"kel, kelmarsh-: {KEY}{KEY}, not kelmarsh-9917-"
    pieces: list[ModelEvent] = [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
    thought: list[ModelEvent] = [ThinkDelta(KEY[:9]), ThinkDelta(KEY[9:])]
    told = [event async for event in redact_stream(_each([*thought, *pieces]), Redactor([KEY]).distinctive_secrets)]
    said = "".join(event.text for event in told if isinstance(event, TextDelta))
    assert said == f"kel, kelmarsh-: {MASK}{MASK}, not kelmarsh-9917-"
    assert [event.text for event in told if isinstance(event, ThinkDelta)] == [MASK]


@pytest.mark.req("POL-06")
async def test_the_whole_answer_and_the_arguments_of_its_calls_are_masked() -> None:
    parts = [
        ThinkingPart(content=KEY),
        TextPart(content=f"It is {KEY}"),
        ToolCallPart(tool_name="a", args=f'{{"text": "{KEY}"}}', tool_call_id="1"),
        ToolCallPart(tool_name="b", args={"deep": [KEY]}, tool_call_id="2"),
    ]
    call = ModelCall.model_construct()
    events: list[ModelEvent] = [Completed(ModelResponse(parts=parts), TokenUsage(), call)]
    [done] = [event async for event in redact_stream(_each(events), Redactor([KEY]).distinctive_secrets)]
    assert isinstance(done, Completed)
    assert KEY not in repr(done.response)
    assert repr(done.response).count(MASK) == len(parts)
