"""Whatever a session holds, what is sent is a chain in which each call has exactly one result."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from annabelle.thinker.prompt.message_repair import NO_RESULT, repair_messages

AT = datetime(2026, 7, 3, 12, 0, tzinfo=UTC)


def asks(*calls: str, text: str = "") -> ModelResponse:
    words = [TextPart(content=text)] if text else []
    return ModelResponse(parts=[*words, *(ToolCallPart(f"do_{one}", {}, one) for one in calls)], timestamp=AT)


def answers(*calls: str, said: str = "") -> ModelRequest:
    results = [ToolReturnPart(f"do_{one}", f"result of {one}", one, timestamp=AT) for one in calls]
    return ModelRequest(parts=[*results, *([UserPromptPart(content=said, timestamp=AT)] if said else [])])


def user(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(content=text, timestamp=AT)])


def assert_valid(chain: list[ModelMessage]) -> None:
    """Each call answered exactly once in the directly following request, no other results, no id twice."""
    seen: list[str] = []
    for index, message in enumerate(chain):
        assert message.parts
        if isinstance(message, ModelResponse):
            calls = [(p.tool_name, p.tool_call_id) for p in message.parts if isinstance(p, ToolCallPart)]
            seen += [call_id for _, call_id in calls]
            following = chain[index + 1] if index + 1 < len(chain) else None
            assert calls == returned(following) or not calls
        elif returned(message):
            assert index
            before = chain[index - 1]
            assert isinstance(before, ModelResponse)
            assert [(p.tool_name, p.tool_call_id) for p in before.parts if isinstance(p, ToolCallPart)] == returned(
                message
            )
    assert len(seen) == len(set(seen))
    assert all(seen)


def returned(message: ModelMessage | None) -> list[tuple[str, str]]:
    parts = message.parts if message is not None else ()
    return [(p.tool_name, p.tool_call_id) for p in parts if isinstance(p, ToolReturnPart)]


_ids = st.sampled_from(["a", "b", "c", "", "a-2", "x" * 40])
_names = st.sampled_from(["look", "write"])
_texts = st.sampled_from(["", " ", "words"])
_response_parts = st.one_of(
    _texts.map(lambda text: TextPart(content=text)),
    _texts.map(lambda text: ThinkingPart(content=text)),
    st.builds(ToolCallPart, _names, st.sampled_from([{}, "{broken", None]), _ids),
)
_request_parts = st.one_of(
    _texts.map(lambda text: UserPromptPart(content=text)),
    st.just(UserPromptPart(content=[])),
    st.just(SystemPromptPart(content="system")),
    st.builds(ToolReturnPart, _names, _texts, _ids, outcome=st.sampled_from(["success", "failed", "retried"])),
)
_messages = st.lists(
    st.one_of(
        st.lists(_response_parts, max_size=4).map(lambda parts: ModelResponse(parts=parts)),
        st.lists(_request_parts, max_size=4).map(lambda parts: ModelRequest(parts=parts)),
    ),
    max_size=12,
)


@pytest.mark.req("CTX-03")
@given(_messages)
def test_any_list_of_messages_becomes_a_valid_chain(messages: list[ModelMessage]) -> None:
    chain = repair_messages(messages)
    assert_valid(chain)
    again = repair_messages(chain)
    assert len(again) == len(chain)
    assert all(a is b for a, b in zip(again, chain, strict=True)), "a valid chain is left as it is"
    calls = sum(isinstance(part, ToolCallPart) for message in messages for part in message.parts)
    assert calls == sum(isinstance(part, ToolCallPart) for message in chain for part in message.parts)


@pytest.mark.req("CTX-03")
def test_leading_results_and_results_of_unknown_calls_are_removed() -> None:
    chain = repair_messages(
        [answers("a"), user("hello"), asks("b", text="wait"), answers("b", "z", said="and?"), asks()]
    )
    assert chain == [user("hello"), asks("b", text="wait"), answers("b", said="and?")]


@pytest.mark.req("CTX-03")
def test_a_call_without_a_result_is_answered_with_an_error() -> None:
    open_end, said = asks("a", "b"), user("are you there?")
    chain = repair_messages([user("go"), open_end, answers("b")])
    assert_valid(chain)
    assert [(p.content, p.outcome) for p in chain[2].parts if isinstance(p, ToolReturnPart)] == [
        (NO_RESULT, "failed"),
        ("result of b", "success"),
    ]
    crashed = repair_messages([user("go"), open_end, said, asks("c")])
    assert_valid(crashed)
    assert crashed[3] is said, "what the user wrote is not mixed with results"
    assert [NO_RESULT in str(message) for message in crashed] == [False, False, True, False, False, True]


@pytest.mark.req("CTX-03")
def test_a_result_that_came_late_or_twice_counts_once_and_right_after_its_call() -> None:
    chain = repair_messages([asks("a", "b"), answers("b"), user("hm"), answers("a", "b"), answers("a")])
    assert chain == [asks("a", "b"), answers("a", "b"), user("hm")]


@pytest.mark.req("CTX-03")
def test_an_id_that_is_used_again_is_replaced_with_its_result() -> None:
    first, second = [asks("a"), answers("a")], [asks("a"), answers("a")]
    chain = repair_messages([*first, *second])
    assert_valid(chain)
    assert chain[:2] == first
    assert returned(chain[3]) == [("do_a", "a-2")]
    assert "result of a" in str(chain[3])


@pytest.mark.req("CTX-03")
def test_a_retry_prompt_of_an_old_session_answers_its_call() -> None:
    kept = ModelMessagesTypeAdapter.validate_python(
        [
            {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "do_a", "tool_call_id": "a"}]},
            {
                "kind": "request",
                "parts": [
                    {"part_kind": "retry-prompt", "content": "wrong", "tool_name": "do_a", "tool_call_id": "a"},
                ],
            },
        ]
    )
    chain = repair_messages(kept)
    assert_valid(chain)
    assert "wrong" in str(chain[1])
