"""Histories to shorten: arbitrary ones, crashed ones, foreign ones."""

from __future__ import annotations

import json

from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

ids = st.sampled_from(["", "c1", "c2", "c3", "c4", "c5"])
words = st.text(max_size=40) | st.sampled_from(["", " ", "order W1234567 for ada@example.org", "yes?", "long " * 300])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
results = (
    words
    | json_values.map(json.dumps)
    | st.just(json.dumps([{"id": f"item_{n}", "text": "x" * 90} for n in range(20)]))
)
calls = st.builds(
    ToolCallPart,
    st.sampled_from(["look_up", "read_file"]),
    st.dictionaries(st.text(max_size=8), words, max_size=2) | words,
    ids,
)
request_parts = st.one_of(
    st.builds(UserPromptPart, content=words),
    st.builds(ToolReturnPart, st.sampled_from(["look_up", "read_file"]), results, ids),
    st.builds(SystemPromptPart, content=words),
)
response_parts = st.one_of(st.builds(TextPart, content=words), st.builds(ThinkingPart, content=words), calls)
messages = st.one_of(
    st.builds(ModelRequest, parts=st.lists(request_parts, max_size=3)),
    st.builds(ModelResponse, parts=st.lists(response_parts, max_size=3)),
)
histories = st.lists(messages, max_size=14)


def user(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(content=text)])


def answer(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(content=text)])


def called(name: str, result: object, call_id: str, **arguments: object) -> list[ModelMessage]:
    """A call and its result."""
    text = result if isinstance(result, str) else json.dumps(result)
    return [
        ModelResponse(parts=[ToolCallPart(name, dict(arguments), call_id)]),
        ModelRequest(parts=[ToolReturnPart(name, text, call_id)]),
    ]


def flights(number: int) -> list[dict[str, object]]:
    trip = {"origin": "SEA", "destination": "DFW", "date": "2031-05-26"}
    return [{"flight_number": f"HAT{number}{n:02}", **trip, "price": 100 + n} for n in range(30)]


def long_history(calls: int = 12) -> list[ModelMessage]:
    """Many calls with large results between a first wish and a goal, which is the last message."""
    history: list[ModelMessage] = [user("Please find me a flight."), answer("Where to?"), user("To Dallas.")]
    for number in range(calls):
        history += called("search_flights", flights(number), f"c{number}", page=number)
        history += [answer(f"Page {number} has thirty flights."), user(f"Look at page {number + 1}, please.")]
    return history
