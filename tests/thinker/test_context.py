"""What the model is told: persona first, then history, then the time, then the message."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from annabelle.core.contract import AgentProfile
from annabelle.core.errors import ConfigMistake
from annabelle.thinker.loop.model_call import dump_message
from annabelle.thinker.prompt.clock import format_now, parse_time_zone
from annabelle.thinker.prompt.persona import PersonaResolver
from annabelle.thinker.prompt.prompt import LayeredPromptBuilder, TurnContext
from annabelle.thinker.session.records import SessionTurn
from annabelle.thinker.session.session_store import SessionView
from annabelle.thinker.turn import clean_input

NOON = datetime(2026, 7, 3, 12, 0, tzinfo=UTC)


def record(number: int, calls: int = 0) -> SessionTurn:
    messages: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart(content=f"question {number}")])]
    for call in range(calls):
        messages.append(ModelResponse(parts=[ToolCallPart("look", {"n": call}, f"c{call}")]))
        messages.append(ModelRequest(parts=[ToolReturnPart("look", f"result {call}", f"c{call}")]))
    messages.append(ModelResponse(parts=[TextPart(content=f"answer {number}")]))
    return SessionTurn(
        message_id=f"msg_{number}",
        trace_id="tr_1",
        user_id="owner",
        user=f"question {number}",
        messages=[dump_message(message) for message in messages],
    )


def contents(messages: list[ModelMessage]) -> list[list[object]]:
    return [[getattr(part, "content", None) for part in message.parts] for message in messages]


def situation(turns: list[SessionTurn], limit: int = 20) -> TurnContext:
    return TurnContext("what now?", NOON, SessionView(turns), limit)


@pytest.mark.req("CTX-01", "CTX-08")
async def test_static_layers_come_first_and_the_time_right_before_the_message(tmp_path: Path) -> None:
    context = LayeredPromptBuilder(
        PersonaResolver(tmp_path, AgentProfile(agent_id="tess"), "Ada"), parse_time_zone("Europe/Berlin")
    )
    prompt = await context.build(situation([record(1)]))
    messages = prompt.messages(prompt.conversation([]))
    assert isinstance(messages[0].parts[0], SystemPromptPart)
    assert "Tess" in messages[0].parts[0].content
    assert "Ada" in messages[0].parts[0].content
    assert "2026" not in messages[0].parts[0].content
    assert "question 1" in str(messages[1])
    last = [str(part.content) for part in messages[-1].parts if isinstance(part, UserPromptPart)]
    assert last == ["<now>Friday, 2026-07-03T14:00+02:00 (CEST)</now>", "what now?"]


async def test_the_prefix_of_two_turns_is_the_same_but_for_what_was_added(tmp_path: Path) -> None:
    context = LayeredPromptBuilder(PersonaResolver(tmp_path, AgentProfile(agent_id="tess"), ""), parse_time_zone("UTC"))
    one, two = await context.build(situation([record(1)])), await context.build(situation([record(1), record(2)]))
    first, second = [one.static, *one.history], [two.static, *two.history]
    assert contents(second[: len(first)]) == contents(first)
    assert len(second) == len(first) + 2


@pytest.mark.req("THK-04")
def test_an_unknown_time_zone_is_named() -> None:
    with pytest.raises(ConfigMistake, match=r"USER_TIMEZONE.*Mars/Olympus"):
        parse_time_zone("Mars/Olympus")
    assert format_now(NOON, parse_time_zone("utc")) == "Friday, 2026-07-03T12:00+00:00 (UTC)"


@pytest.mark.req("LOOP-08")
@given(st.text(alphabet=st.characters(codec=None), max_size=300), st.integers(1, 100))
def test_no_control_character_and_no_overlong_text_passes(text: str, most: int) -> None:
    cleaned = clean_input(text, most)
    body = cleaned.text.partition("\n\n[The message was")[0] if cleaned.notice else cleaned.text
    assert len(body) <= most
    assert not any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 for c in cleaned.text)
    cleaned.text.encode()
