"""Small talk: known in several languages, and never taken for it when something is asked."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from annabelle.thinker.selection.hybrid_selector import CORE
from annabelle.thinker.selection.keywords import classify_small_talk
from thinker.test_select import select


@pytest.mark.req("SEL-03")
@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "Hello!",
        "hi Annabelle",
        "good morning :)",
        "How are you?",
        "Hello, who are you?",
        "What's your name?",
        "Wie heißt du?",
        "thanks a lot!!",
        "thank you so much",
        "ok",
        "👍",
        "😀😀",
        "❤️",
        "...",
        "Guten Morgen!",
        "Dziękuję",
        "cześć",
        "¡Hola! ¿Qué tal?",
        "merci beaucoup",
        "ça va ?",
        "Привет",
        "你好",
        "おはよう",
        "안녕하세요",
        "مرحبا",
        "धन्यवाद",
        "hey\u200b",
        "oh nice, thanks",
        "what's up",
        "good night",
    ],
)
async def test_small_talk_gets_core_tools_only_and_forces_nothing(text: str) -> None:
    chosen = await select(text)
    assert chosen.small_talk
    assert chosen.names() == sorted(CORE)
    assert chosen.temperature is None


@pytest.mark.req("SEL-03")
@pytest.mark.parametrize(
    "text",
    [
        "hello, what files do I have?",
        "thanks, now delete it",
        "good morning, any new mail?",
        "hi can you search the web",
        "ok send it",
        "how are you at cooking",
        "who are you meeting tomorrow",
        "hello world program in python",
        "5",
        "Hallo, wie wird das Wetter?",
        "",
        "thanks " * 40,
        "你好，明天天气怎么样",
        "http://example.com",
        "help",
    ],
)
def test_a_greeting_with_a_request_is_none(text: str) -> None:
    assert classify_small_talk(text) is None


@pytest.mark.req("SEL-05", "SEL-03")
async def test_a_yes_keeps_what_was_in_use() -> None:
    chosen = await select("yes", sticky=("filer_delete_file",))
    assert chosen.small_talk
    assert chosen.names() == [*sorted(CORE), "filer_delete_file"]
    assert (await select("thanks", sticky=("filer_delete_file",))).names() == sorted(CORE)


@given(st.text(max_size=150))
def test_any_text_is_looked_at_without_trouble(text: str) -> None:
    assert classify_small_talk(text) in (None, "small_talk", "assent")
