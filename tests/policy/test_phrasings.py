"""Orders as people word them in five languages, and sentences that only sound like one (phrasings.toml, POL-04)."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from annabelle.core.tools import JsonObject
from annabelle.policy.intent import verb_position
from annabelle.policy.intent.orders import orders
from policy.house import House, Turn

_ROWS = tomllib.loads(Path(__file__).with_name("phrasings.toml").read_text(encoding="utf-8"))
_SAID: list[tuple[str, str, JsonObject]] = [
    (words, act["tool"], act["arguments"]) for act in _ROWS["acts"].values() for words in act["said"]
]
_LOOKED_AT = ("gmail_list_emails", "gmail_list_events", "notes_list_todos", "find_contact")


def _turn(words: str) -> Turn:
    """Everything was looked at that could be meant. The dentist goes by a name of every language."""
    house = House(events={"dentist": ("Dentist Zahnarzt dentiste dentista dentystę", ()), "yoga": ("Yoga", ())})
    turn = Turn(house).says(words)
    turn.facts = replace(turn.facts, origins=("searcher_web_fetch",))
    for tool in _LOOKED_AT:
        turn.sees(tool, {})
    return turn


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(("words", "tool", "arguments"), _SAID, ids=[f"{tool}: {words}" for words, tool, _ in _SAID])
def test_whoever_orders_something_is_not_told_they_did_not(words: str, tool: str, arguments: JsonObject) -> None:
    reasons = _turn(words).decides(tool, arguments).reasons
    assert not [reason for reason in reasons if "you did not ask for this" in reason]


@pytest.mark.req("POL-04")
@pytest.mark.parametrize("words", _ROWS["no_orders"]["said"])
def test_a_question_a_report_a_denial_or_a_plan_orders_nothing(words: str) -> None:
    assert orders(words) == frozenset()


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    "agrees",
    [
        "yes do it",
        "go ahead pls",
        "ok go for it",
        "yup, do that",
        "ja mach das",
        "ja bitte",
        "mach mal",
        "oui vas-y",
        "d'accord, fais-le stp",
        "sí, hazlo",
        "dale",
        "vale adelante",
        "tak, zrób to",
        "jasne proszę",
    ],
)
def test_whoever_says_yes_orders_what_they_asked_for_before(agrees: str) -> None:
    facts = _turn("send bob@example.com the recipe").says(agrees).facts
    assert "send" in facts.order_kinds


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    "answers",
    ["no", "thanks!", "danke", "now", "yes but not now", "ja aber nicht an bob", "ok wait", "vale, mañana lo miro"],
)
def test_whoever_does_not_just_say_yes_orders_nothing_by_it(answers: str) -> None:
    assert "send" not in _turn("send bob@example.com the recipe").says(answers).facts.order_kinds


@pytest.mark.req("POL-04")
def test_a_long_text_is_read_for_orders_at_its_beginning_and_its_end_alone() -> None:
    told = "It rained again, and nobody knew for how long. " * 150
    assert orders(f"Delete old.md. {told}") == {"delete"}
    assert orders(f"{told} Delete old.md.") == {"delete"}
    assert orders(f"{told} Delete old.md. {told}") == frozenset()
    assert orders("and then they went and delete " * 300) == frozenset()


@pytest.mark.req("POL-04")
@pytest.mark.parametrize("words", ["if a ", "send ", "if send it is ", "push x ", "„", "- ", "wenn das ist schick "])
def test_reading_a_text_costs_no_more_the_longer_it_gets(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted are the places that are looked at before a verb, which is where the time goes."""

    def looks(text: str) -> int:
        count = 0
        ends_at = verb_position.VerbPlace.ends_at

        def counted(place: verb_position.VerbPlace, start: int, written: str) -> bool:
            nonlocal count
            count += 1
            return ends_at(place, start, written)

        with monkeypatch.context() as patched:
            patched.setattr(verb_position.VerbPlace, "ends_at", counted)
            orders(text)
        return count

    assert looks(words * (15_000 // len(words))) <= 4 * max(1, looks(words * (1_500 // len(words))))
