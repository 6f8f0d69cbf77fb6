"""Tokens are estimated by family and script, and corrected by what providers report."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart

from annabelle.core.tools import ToolSpec
from annabelle.llm.token_estimate import TokenCounter, estimate_text_tokens, estimate_tokens, family_of


def said(text: str) -> list[ModelRequest | ModelResponse]:
    return [ModelRequest(parts=[UserPromptPart(content=text)])]


@pytest.mark.req("CMP-05")
@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-sonnet-4-5", "anthropic"),
        ("anthropic/claude-3.5-haiku", "anthropic"),
        ("gemini-2.5-flash", "gemini"),
        ("llama-3.3-70b-versatile", "llama"),
        ("qwen2.5-1.5b", "llama"),
        ("gpt-5-mini", "openai"),
        ("openai/gpt-oss-120b", "openai"),
        ("something-new", "openai"),
    ],
)
def test_a_model_counts_like_its_family(model: str, family: str):
    assert family_of(model) == family


@pytest.mark.req("CMP-05")
def test_families_and_scripts_count_differently():
    english, russian, chinese = (
        "hello there, how are you? " * 40,
        "привет, как твои дела? " * 40,
        "你好，你今天怎么样？" * 40,
    )
    assert estimate_text_tokens(english, "claude-x") > estimate_text_tokens(english, "gpt-x")
    per_sign = [estimate_text_tokens(text) / len(text) for text in (english, russian, chinese)]
    assert per_sign == sorted(per_sign)
    assert per_sign[2] > 0.6
    assert estimate_text_tokens("") == 0


def test_calls_tools_and_pictures_are_counted_too():
    call = ModelResponse(parts=[ToolCallPart("look_up", {"text": "x" * 400}, "c1")])
    assert estimate_tokens([call]) > 100
    spec = ToolSpec(name="t", server="s", original_name="t", description="d" * 400, input_schema={})
    assert estimate_tokens([], [spec]) >= 100
    assert estimate_tokens([ModelResponse(parts=[TextPart(content="a" * 400)])]) == 104


@pytest.mark.req("CMP-05")
def test_what_a_provider_reports_corrects_the_next_count():
    counter = TokenCounter()
    messages = said("word " * 1000)
    estimated = estimate_tokens(messages, model="m")
    for _ in range(5):
        counter.learn("m", estimated, round(estimated * 1.3))
    assert counter.count(messages, model="m") == pytest.approx(estimated * 1.3, rel=0.01)
    assert counter.count(messages, model="another") == estimate_tokens(messages, model="another")


@pytest.mark.req("CMP-05")
def test_one_odd_report_moves_a_known_figure_only_a_little():
    counter = TokenCounter()
    counter.learn("m", 1000, 1000)
    counter.learn("m", 1000, 1_000_000)
    assert counter.ratio("m") == pytest.approx(1.3)


@given(st.lists(st.tuples(st.integers(-10, 10**9), st.integers(-10, 10**9))))
def test_no_report_makes_a_count_absurd(reports: list[tuple[int, int]]):
    counter = TokenCounter()
    for estimated, reported in reports:
        counter.learn("m", estimated, reported)
    assert 0.5 <= counter.ratio("m") <= 2.0


@given(st.text())
def test_any_text_has_a_count(text: str):
    assert 0 <= estimate_text_tokens(text, "claude") <= 2 * len(text) + 1
