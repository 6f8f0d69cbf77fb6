"""The vocabulary refuses what must not get in, and adds up what must add up."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from annabelle.core.contract import ModelCall, Reserve, ThinkerBoot, TokenUsage, ToolCall
from annabelle.core.errors import ErrorBody
from annabelle.core.messages import InboundMessage
from annabelle.core.tools import ToolAnnotations, ToolResult

COSTS = st.one_of(st.none(), st.integers(0, 1000).map(lambda cents: cents / 4))
USAGES = st.builds(TokenUsage, input_tokens=st.integers(0, 9999), output_tokens=st.integers(0, 9999), cost_usd=COSTS)


@given(USAGES, USAGES, USAGES)
def test_usage_adds_up_in_any_order_and_an_unknown_cost_is_not_zero(a: TokenUsage, b: TokenUsage, c: TokenUsage):
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert (a + b).cost_usd is None or not (a.cost_usd is None and b.cost_usd is None)


@pytest.mark.req("CST-09")
def test_what_is_settled_is_the_call_that_was_reserved():
    asked = Reserve(
        call_id="c1", agent_id="guardian", user_id="owner", message_id="m1", purpose="guardian", provider="groq",
        model="safe", estimated_input_tokens=7,
    )  # fmt: skip
    settled = ModelCall.from_reservation(asked, TokenUsage(input_tokens=5), 0.25, "error")
    shared = ModelCall.model_fields.keys() & Reserve.model_fields.keys()
    assert settled.model_dump(include=shared) == asked.model_dump(include=shared)
    assert (settled.usage.input_tokens, settled.duration_ms, settled.outcome) == (5, 250.0, "error")


@pytest.mark.parametrize("name", ["", "a\nb", "a\x00b", "x" * 201])
def test_a_message_with_an_unusable_name_is_refused(name: str):
    with pytest.raises(ValidationError):
        InboundMessage(channel=name, chat_id="c", sender_id="s", text="hi")


@pytest.mark.parametrize("call_id", ["a b", "a\n", "../x", "x" * 201, ""])
def test_a_call_id_that_is_none_is_refused(call_id: str):
    with pytest.raises(ValidationError):
        ToolCall(name="filer_read", call_id=call_id)


def test_a_tool_that_says_nothing_about_itself_is_taken_for_dangerous():
    silent = ToolAnnotations()
    assert silent.destructive
    assert not silent.read_only
    assert not silent.repeatable


def test_a_failed_call_gives_the_model_the_hint_too():
    failed = ToolResult.failure(ErrorBody(code="x", message="No such file.", hint="List the folder."))
    assert failed.is_error
    assert failed.text == "No such file. List the folder."


@pytest.mark.req("TRC-03")
def test_the_secret_of_a_thinker_does_not_show_when_it_is_printed():
    boot = ThinkerBoot.model_validate(
        {
            "agent": {"agent_id": "a"},
            "hub_url": "http://h",
            "secret": "lovelace",
            "port": 0,
            "environment": {"K": "byron"},
        }
    )
    assert "lovelace" not in repr(boot)
    assert "byron" not in repr(boot)
